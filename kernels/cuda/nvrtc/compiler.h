// NVRTC, NVIDIA's run-time compiler: needs neither a GPU nor a driver.
#ifndef MENDEL_KERNELS_CUDA_NVRTC_COMPILER_H_
#define MENDEL_KERNELS_CUDA_NVRTC_COMPILER_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace mendel::cuda {

struct NvrtcProgram;

/// As in nvrtc.h, whose functions have not changed since 11.4; results are 0 or an error. The names are NVRTC's, without "nvrtc".
struct Nvrtc {
  int (*Version)(int* major, int* minor) = nullptr;
  const char* (*GetErrorString)(int error) = nullptr;
  int (*GetNumSupportedArchs)(int* count) = nullptr;
  int (*GetSupportedArchs)(int* architectures) = nullptr;
  int (*CreateProgram)(NvrtcProgram** program, const char* text, const char* name, int headers, const char* const* header_texts,
                       const char* const* header_names) = nullptr;
  int (*DestroyProgram)(NvrtcProgram** program) = nullptr;
  int (*CompileProgram)(NvrtcProgram* program, int count, const char* const* options) = nullptr;
  int (*GetProgramLogSize)(NvrtcProgram* program, size_t* size) = nullptr;
  int (*GetProgramLog)(NvrtcProgram* program, char* log) = nullptr;
  int (*GetCubinSize)(NvrtcProgram* program, size_t* size) = nullptr;
  int (*GetCubin)(NvrtcProgram* program, char* cubin) = nullptr;

  std::string path;

  /// OK, or Unavailable that names `what` and NVRTC's text.
  absl::Status Check(int result, const std::string& what) const;
};

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
  /// The one of this process, opened at the first call. NotFound where there is none, else as Make.
  static absl::StatusOr<const Compiler*> Get();
  /// Of this table, all of whose entries are set. FailedPrecondition when it is older than 11.4, Unavailable when it does not tell
  /// its version or architectures.
  static absl::StatusOr<Compiler> Make(Nvrtc table);

  /// "13.0".
  const std::string& version() const { return version_; }
  const std::string& path() const { return table_.path; }
  /// Options of every compilation, the architecture apart.
  static const char* options() { return "--std=c++17 --ptxas-options=-v"; }
  /// Does this version know sm_`architecture`?
  bool Supports(int architecture) const;
  /// For one real architecture, e.g. 90. InvalidArgument with the log when the text does not compile, Unavailable when NVRTC fails
  /// otherwise. Thread-safe.
  absl::StatusOr<CompiledKernel> Compile(const std::string& text, const std::string& name, int architecture) const;

 private:
  explicit Compiler(Nvrtc table) : table_(std::move(table)) {}
  /// What the compiler said; where it does not tell, an error.
  absl::StatusOr<std::string> LogOf(NvrtcProgram* program) const;

  Nvrtc table_;
  std::string version_;
  std::vector<int> architectures_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_NVRTC_COMPILER_H_
