// Libraries of a CUDA installation, opened at run time: nothing here is needed to build, and what
// is absent is no error.
#ifndef MENDEL_KERNELS_CUDA_DRIVER_TABLE_LIBRARY_H_
#define MENDEL_KERNELS_CUDA_DRIVER_TABLE_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mendel::cuda {

/// An open library; stays open for the life of the process (its thread-local state does not survive
/// closing).
struct Library {
  void* handle = nullptr;
  std::string path;  ///< as it was opened
};

/// Folders that are searched, in order: MENDEL_CUDA_PATH, which is also what the option --cuda-path
/// sets; CUDA_HOME and CUDA_PATH with their lib64 and targets/*/lib; the nvidia/* packages of
/// Python (VIRTUAL_ENV, the user's, the system's); "" for the loader's own search (LD_LIBRARY_PATH,
/// ldconfig); /usr/local/cuda.
std::vector<std::string> CudaFolders();

/// The first of `file_names` that loads from the first folder that has one (dlopen, RTLD_LOCAL).
/// NotFound says where was looked.
absl::StatusOr<Library> OpenLibrary(const std::vector<std::string>& file_names,
                                    const std::vector<std::string>& folders = CudaFolders());

/// The same, but names that end with a major version of CUDA newer than `driver_version`
/// (13000: 13.0) come last, wherever they lie: of two toolkits, the one that the driver runs is
/// taken. 0: there is no driver to ask.
absl::StatusOr<Library> OpenLibraryFor(int driver_version,
                                       const std::vector<std::string>& file_names,
                                       const std::vector<std::string>& folders = CudaFolders());

/// An entry point; NotFound names it and the library.
absl::StatusOr<void*> FindSymbol(const Library& library, const char* name);

/// Resolves `name` into the function pointer `to`.
template <class Function>
absl::Status Resolve(const Library& library, const char* name, Function*& to) {
  const absl::StatusOr<void*> symbol = FindSymbol(library, name);
  if (!symbol.ok()) return symbol.status();
  to = reinterpret_cast<Function*>(*symbol);
  return absl::OkStatus();
}

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_DRIVER_TABLE_LIBRARY_H_
