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

/// The function table of NVRTC, as in nvrtc.h; it has not changed since 11.4. The names are
/// NVRTC's, without "nvrtc". Functions return 0 or an error.
struct Nvrtc {
  int (*Version)(int* major, int* minor) = nullptr;
  const char* (*GetErrorString)(int error) = nullptr;
  int (*GetNumSupportedArchs)(int* count) = nullptr;
  int (*GetSupportedArchs)(int* architectures) = nullptr;
  int (*CreateProgram)(NvrtcProgram** program, const char* text, const char* name, int headers,
                       const char* const* header_texts, const char* const* header_names) = nullptr;
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

/// Resources that a thread of a kernel uses, as ptxas reports them.
struct ResourceUsage {
  int registers = 0;
  int spilled_bytes = 0;  ///< stores and loads
  int stack_bytes = 0;
};
/// Parses the compiler's log, for all its entries together; registers are 0 if it names none.
ResourceUsage ParseUsage(const std::string& log);
/// The same for each entry, by name.
std::map<std::string, ResourceUsage> ParseUsageOfEntries(const std::string& log);

struct CompiledKernel {
  std::vector<char> cubin;
  ResourceUsage usage;                           ///< usage of all entries together
  std::map<std::string, ResourceUsage> entries;  ///< by name
};

class Compiler {
 public:
  /// This process's compiler, opened at the first call. NotFound if there is none; or as Make.
  static absl::StatusOr<const Compiler*> Get();
  /// Makes a compiler of this table, all of whose entries are set. FailedPrecondition if it is
  /// older than 11.4, Unavailable if it does not report its version or architectures.
  static absl::StatusOr<Compiler> Make(Nvrtc table);

  /// "13.0".
  const std::string& version() const { return version_; }
  const std::string& path() const { return table_.path; }
  /// The options of every compilation, except the architecture.
  static const char* options() { return "--std=c++17 --ptxas-options=-v"; }
  /// True if this version can compile for sm_`architecture`.
  bool Supports(int architecture) const;
  /// Compiles for one real architecture, e.g. 90. InvalidArgument with the log if the text does not
  /// compile, Unavailable if NVRTC fails otherwise. Thread-safe.
  absl::StatusOr<CompiledKernel> Compile(const std::string& text, const std::string& name,
                                         int architecture) const;

 private:
  explicit Compiler(Nvrtc table) : table_(std::move(table)) {}
  /// The compiler's log, or an error if NVRTC does not return it.
  absl::StatusOr<std::string> LogOf(NvrtcProgram* program) const;

  Nvrtc table_;
  std::string version_;
  std::vector<int> architectures_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_NVRTC_COMPILER_H_
