// NVRTC, NVIDIA's run-time compiler: needs neither a GPU nor a driver.
#ifndef MENDEL_KERNELS_CUDA_NVRTC_COMPILER_H_
#define MENDEL_KERNELS_CUDA_NVRTC_COMPILER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mendel::cuda {

/// What ptxas tells about a kernel, a thread.
struct ResourceUsage {
  int registers = 0;
  int spilled_bytes = 0;  ///< stores and loads
  int stack_bytes = 0;
};
/// From the compiler's log, of all its entries together; registers 0 where it says nothing.
ResourceUsage ParseUsage(const std::string& log);
/// The same entry by entry, by name.
std::map<std::string, ResourceUsage> ParseUsageOfEntries(const std::string& log);

struct CompiledKernel {
  std::vector<char> cubin;
  ResourceUsage usage;                           ///< of all entries together
  std::map<std::string, ResourceUsage> entries;  ///< by name
};

class Compiler {
 public:
  /// The one of this process, opened at the first call. NotFound where there is none, FailedPrecondition when it is older
  /// than 11.4.
  static absl::StatusOr<const Compiler*> Get();

  /// "13.0".
  const std::string& version() const { return version_; }
  const std::string& path() const { return path_; }
  /// Options of every compilation, the architecture apart.
  static const char* options() { return "--std=c++17 --ptxas-options=-v"; }
  /// Does this version know sm_`architecture`?
  bool Supports(int architecture) const;
  /// For one real architecture, e.g. 90. InvalidArgument with the log when the text does not compile. Thread-safe.
  absl::StatusOr<CompiledKernel> Compile(const std::string& text, const std::string& name, int architecture) const;

 private:
  struct Table;
  static absl::StatusOr<const Compiler*> Open();

  const Table* table_ = nullptr;
  std::string version_, path_;
  std::vector<int> architectures_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_NVRTC_COMPILER_H_
