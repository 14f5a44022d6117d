#include "kernels/cuda/driver_table/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "base/status.h"

namespace mendel::cuda {
namespace {

namespace fs = std::filesystem;

/// Subfolders of `folder` whose names begin with `prefix`, sorted.
std::vector<fs::path> Subfolders(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(prefix) && it->is_directory(error))
      found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// A toolkit's folders of libraries.
void AddToolkit(const fs::path& root, std::vector<std::string>& folders) {
  folders.push_back(root / "lib64");
  for (const fs::path& target : Subfolders(root / "targets", "")) folders.push_back(target / "lib");
}

/// nvidia/*/lib under every Python's packages in `root`.
void AddPackages(const fs::path& root, std::vector<std::string>& folders) {
  for (const fs::path& python : Subfolders(root / "lib", "python3")) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const fs::path& package : Subfolders(python / packages / "nvidia", ""))
        folders.push_back(package / "lib");
    }
  }
}

}  // namespace

std::vector<std::string> CudaFolders() {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("MENDEL_CUDA_PATH")) {
    folders.push_back(path);
    AddToolkit(path, folders);
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* path = std::getenv(variable)) AddToolkit(path, folders);
  }
  if (const char* path = std::getenv("VIRTUAL_ENV")) AddPackages(path, folders);
  if (const char* path = std::getenv("HOME")) AddPackages(fs::path(path) / ".local", folders);
  AddPackages("/usr/local", folders);
  AddPackages("/usr", folders);
  folders.push_back("");
  AddToolkit("/usr/local/cuda", folders);
  return folders;
}

absl::StatusOr<Library> OpenLibrary(const std::vector<std::string>& file_names,
                                    const std::vector<std::string>& folders) {
  std::string broken;
  for (const std::string& folder : folders) {
    for (const std::string& name : file_names) {
      const std::string path = folder.empty() ? name : (fs::path(folder) / name).string();
      std::error_code error;
      if (!folder.empty() && !fs::exists(path, error)) continue;
      if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return Library{handle, path};
      if (!folder.empty()) broken += Cat("; ", dlerror());  // there, and yet it does not load
    }
  }
  const bool by_loader = folders == std::vector<std::string>{""};
  return absl::NotFoundError(
      Cat("no ", file_names[0],
          by_loader ? " (LD_LIBRARY_PATH, ldconfig)"
                    : " (--cuda-path, MENDEL_CUDA_PATH, CUDA_HOME, Python's nvidia packages, "
                      "LD_LIBRARY_PATH, ldconfig, /usr/local/cuda)",
          broken));
}

absl::StatusOr<Library> OpenLibraryFor(int driver_version,
                                       const std::vector<std::string>& file_names,
                                       const std::vector<std::string>& folders) {
  const auto is_newer = [&](const std::string& name) {
    return driver_version > 0 &&
           std::atoi(name.c_str() + name.rfind('.') + 1) > driver_version / 1000;
  };
  std::vector<std::string> older;
  std::remove_copy_if(file_names.begin(), file_names.end(), std::back_inserter(older), is_newer);
  if (!older.empty() && older.size() < file_names.size()) {
    if (auto library = OpenLibrary(older, folders); library.ok()) return library;
  }
  return OpenLibrary(file_names, folders);
}

absl::StatusOr<void*> FindSymbol(const Library& library, const char* name) {
  void* symbol = dlsym(library.handle, name);
  if (symbol == nullptr) return absl::NotFoundError(Cat(library.path, " has no ", name));
  return symbol;
}

}  // namespace mendel::cuda
