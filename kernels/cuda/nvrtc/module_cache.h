// The module cache keeps compiled modules by their source, in memory and on disk: NVRTC's output is
// the same for equal text, options, architecture and version.
#ifndef MENDEL_KERNELS_CUDA_NVRTC_MODULE_CACHE_H_
#define MENDEL_KERNELS_CUDA_NVRTC_MODULE_CACHE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/nvrtc/compiler.h"

namespace mendel::cuda {

/// A module source is everything that the compiled image depends on.
struct ModuleSource {
  std::string text;
  std::string options;   ///< options of the compiler, architecture apart
  std::string compiler;  ///< name and version
  int architecture = 0;  ///< 90: sm_90

  /// SHA-256 of all of it, 64 hexadecimal digits.
  std::string Key() const;
};

struct ModuleCacheOptions {
  /// One file a module, KEY.cubin, made at the first store. Empty: nothing goes to disk.
  std::string folder;
  int64_t max_disk_bytes = int64_t{512} << 20;
  int64_t max_memory_bytes = int64_t{128} << 20;
};

/// Thread-safe; several processes may share a folder: files appear by an atomic rename. A file
/// contains its key and the hash of its image; a file that does not match is compiled anew and
/// replaced. If the folder cannot be written, images stay in memory, which is no error. Over a
/// limit, the images that were not used for the longest time are removed first.
class ModuleCache {
 public:
  using Compile = std::function<absl::StatusOr<std::vector<char>>()>;

  explicit ModuleCache(ModuleCacheOptions options) : options_(std::move(options)) {}

  /// Returns the stored image of `source`. If there is none, it calls `compile` and stores the
  /// image. Errors are those of `compile` and are not stored. Threads that request the same new
  /// source at the same time may each compile it.
  absl::StatusOr<std::vector<char>> Get(const ModuleSource& source, const Compile& compile);

 private:
  void KeepInMemory(const std::string& key, const std::vector<char>& image);
  std::string PathOf(const std::string& key) const {
    return options_.folder + "/" + key + ".cubin";
  }
  bool Read(const std::string& key, std::vector<char>& image) const;
  void Write(const std::string& key, const std::vector<char>& image) const;
  void LimitDisk() const;

  ModuleCacheOptions options_;
  std::mutex mutex_;
  std::map<std::string, std::vector<char>> images_;
  std::deque<std::string> order_;  // order of images_, the latest used last
  int64_t memory_bytes_ = 0;
};

/// $XDG_CACHE_HOME/mendel/kernels, or ~/.cache/mendel/kernels; empty where neither variable is set.
std::string DefaultModuleFolder();

/// Compiles through the cache of this process, in the default folder. Errors as Compiler::Compile.
absl::StatusOr<std::vector<char>> CompiledModule(const Compiler& compiler, const std::string& text,
                                                 int architecture);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_NVRTC_MODULE_CACHE_H_
