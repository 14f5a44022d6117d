#include "kernels/cuda/nvrtc/module_cache.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/hash.h"
#include "base/status.h"

namespace mendel::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kImage = ".cubin", kTemporary = ".tmp-";

/// First line of a file; the image follows.
std::string HeadOf(const std::string& key, const std::vector<char>& image) {
  return Cat("mendel kernel 1 ", key, " ", Sha256Hex(std::string_view(image.data(), image.size())),
             "\n");
}

struct File {
  fs::path path;
  fs::file_time_type used;
  int64_t bytes = 0;
};

}  // namespace

std::string ModuleSource::Key() const {
  return Sha256Hex(
      Cat("mendel module 1\n", compiler, "\n", options, "\nsm_", architecture, "\n", text));
}

absl::StatusOr<std::vector<char>> ModuleCache::Get(const ModuleSource& source,
                                                   const Compile& compile) {
  const std::string key = source.Key();
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = images_.find(key); found != images_.end()) {
      order_.erase(std::find(order_.begin(), order_.end(), key));
      order_.push_back(key);
      return found->second;
    }
  }
  std::vector<char> image;
  const bool stored = !options_.folder.empty() && Read(key, image);
  if (!stored) {
    MENDEL_ASSIGN_OR_RETURN(image, compile());
    if (!options_.folder.empty()) Write(key, image);
  }
  KeepInMemory(key, image);
  return image;
}

void ModuleCache::KeepInMemory(const std::string& key, const std::vector<char>& image) {
  const std::lock_guard lock(mutex_);
  if (!images_.emplace(key, image).second) return;
  order_.push_back(key);
  memory_bytes_ += static_cast<int64_t>(image.size());
  while (memory_bytes_ > options_.max_memory_bytes) {
    const auto oldest = images_.find(order_.front());
    memory_bytes_ -= static_cast<int64_t>(oldest->second.size());
    images_.erase(oldest);
    order_.pop_front();
  }
}

bool ModuleCache::Read(const std::string& key, std::vector<char>& image) const {
  const std::string path = PathOf(key);
  std::ifstream file(path, std::ios::binary);
  std::string head;
  if (!file || !std::getline(file, head)) return false;
  image.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  if (head + "\n" != HeadOf(key, image)) return false;
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);  // it was used
  return true;
}

void ModuleCache::Write(const std::string& key, const std::vector<char>& image) const {
  std::error_code error;
  fs::create_directories(options_.folder, error);
  std::string temporary = Cat(options_.folder, "/", kTemporary, "XXXXXX");
  const int descriptor = error ? -1 : ::mkstemp(temporary.data());
  if (descriptor < 0) return;
  ::close(descriptor);
  bool good = false;
  {
    std::ofstream file(temporary, std::ios::binary);
    file << HeadOf(key, image);
    file.write(image.data(), static_cast<std::streamsize>(image.size()));
    good = static_cast<bool>(file.flush());
  }
  if (good) fs::rename(temporary, PathOf(key), error);
  if (!good || error) fs::remove(temporary, error);
  LimitDisk();
}

void ModuleCache::LimitDisk() const {
  const auto now = fs::file_time_type::clock::now();
  std::vector<File> files;
  int64_t sum = 0;
  std::error_code error;
  for (fs::directory_iterator it(options_.folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;  // another process may be at it as well
    const std::string name = it->path().filename().string();
    const File file{it->path(), it->last_write_time(gone),
                    static_cast<int64_t>(it->file_size(gone))};
    if (gone) continue;
    if (name.starts_with(kTemporary)) {
      // A process that was killed left it.
      if (now - file.used > std::chrono::hours(1)) fs::remove(file.path, gone);
    } else if (name.ends_with(kImage)) {
      sum += file.bytes;
      files.push_back(file);
    }
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  for (size_t k = 0; k < files.size() && sum > options_.max_disk_bytes; ++k) {
    fs::remove(files[k].path, error);
    sum -= files[k].bytes;
  }
}

std::string DefaultModuleFolder() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && *xdg != '\0') return Cat(xdg, "/mendel/kernels");
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? Cat(home, "/.cache/mendel/kernels") : "";
}

absl::StatusOr<std::vector<char>> CompiledModule(const Compiler& compiler, const std::string& text,
                                                 int architecture) {
  static auto* cache = new ModuleCache({.folder = DefaultModuleFolder()});
  const ModuleSource source{text, compiler.options(), "NVRTC " + compiler.version(), architecture};
  return cache->Get(source, [&]() -> absl::StatusOr<std::vector<char>> {
    MENDEL_ASSIGN_OR_RETURN(CompiledKernel compiled, compiler.Compile(text, "plan", architecture));
    return std::move(compiled.cubin);
  });
}

}  // namespace mendel::cuda
