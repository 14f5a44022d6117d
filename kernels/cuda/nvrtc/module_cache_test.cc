#include "kernels/cuda/nvrtc/module_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>

#include "base/status.h"

namespace mendel::cuda {
namespace {

namespace fs = std::filesystem;

class ModuleCacheTest : public testing::Test {
 protected:
  ModuleCacheTest() : folder_(fs::path(testing::TempDir()) / Cat("mendel_modules_", ::getpid())) {
    fs::remove_all(folder_);
  }
  ~ModuleCacheTest() override { fs::remove_all(folder_); }

  static ModuleSource Source(const std::string& text) { return {text, "-O3", "counter 1", 90}; }
  std::unique_ptr<ModuleCache> Open() const {
    return std::make_unique<ModuleCache>(ModuleCacheOptions{.folder = folder_.string()});
  }
  fs::path FileOf(const ModuleSource& source) const { return folder_ / (source.Key() + ".cubin"); }
  size_t Files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  /// The image that `cache` returns for `source`; the compiler turns text into "image of TEXT".
  std::string Get(ModuleCache& cache, const ModuleSource& source) {
    const auto image = cache.Get(source, [&]() -> absl::StatusOr<std::vector<char>> {
      ++compiled_;
      const std::string text = "image of " + source.text;
      return std::vector<char>(text.begin(), text.end());
    });
    return image.ok() ? std::string(image->begin(), image->end()) : image.status().ToString();
  }

  fs::path folder_;
  int compiled_ = 0;
};

TEST_F(ModuleCacheTest, EachSourceIsCompiledOnce) {
  const auto cache = Open();
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(Get(*cache, Source("a")), "image of a");
    EXPECT_EQ(Get(*cache, Source("b")), "image of b");
  }
  EXPECT_EQ(compiled_, 2);
  EXPECT_EQ(Get(*Open(), Source("a")), "image of a");  // another process
  EXPECT_EQ(compiled_, 2);
  EXPECT_EQ(Files(), 2u);
}

TEST_F(ModuleCacheTest, EverythingThatAnImageDependsOnIsInItsKey) {
  ModuleSource source = Source("a");
  std::set<std::string> keys = {source.Key()};
  for (const auto& change :
       {+[](ModuleSource& s) { s.text += " "; }, +[](ModuleSource& s) { s.options = "-O2"; },
        +[](ModuleSource& s) { s.compiler = "counter 2"; },
        +[](ModuleSource& s) { s.architecture = 80; }}) {
    source = Source("a");
    change(source);
    EXPECT_TRUE(keys.insert(source.Key()).second);
  }
}

TEST_F(ModuleCacheTest, DamagedFilesAreCompiledAnewAndReplaced) {
  const ModuleSource source = Source("a");
  Get(*Open(), source);
  Get(*Open(), Source("b"));
  std::ifstream in(FileOf(source), std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  compiled_ = 0;
  std::vector<std::string> bad = {"", good.substr(0, good.size() - 1), good + "x",
                                  "something else\n"};
  for (size_t at = 0; at < good.size(); at += 7) {
    bad.push_back(good);
    bad.back()[at] = static_cast<char>(bad.back()[at] ^ 1);
  }
  for (const std::string& bytes : bad) {
    std::ofstream(FileOf(source), std::ios::binary) << bytes;
    EXPECT_EQ(Get(*Open(), source), "image of a");
    EXPECT_EQ(Get(*Open(), source), "image of a");  // of the replaced file
  }
  EXPECT_EQ(compiled_, static_cast<int>(bad.size()));
  // An intact file of another source.
  fs::copy_file(FileOf(Source("b")), FileOf(source), fs::copy_options::overwrite_existing);
  EXPECT_EQ(Get(*Open(), source), "image of a");
}

TEST_F(ModuleCacheTest, ErrorsAreNotStored) {
  const auto cache = Open();
  const auto failed =
      cache->Get(Source("a"), [] { return absl::StatusOr<std::vector<char>>(InvalidInput("no")); });
  EXPECT_TRUE(absl::IsInvalidArgument(failed.status()));
  EXPECT_EQ(Get(*cache, Source("a")), "image of a");
}

TEST_F(ModuleCacheTest, OverTheLimitTheLongestUnusedGoesFirst) {
  const ModuleSource old = Source("old"), used = Source("use"), fresh = Source("new");
  Get(*Open(), old);
  Get(*Open(), used);
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(100);
  fs::last_write_time(FileOf(old), long_ago);
  fs::last_write_time(FileOf(used), long_ago - std::chrono::hours(1));
  Get(*Open(), used);  // a hit
  std::ofstream(folder_ / ".tmp-abcdef") << "half a file of a killed process";
  fs::last_write_time(folder_ / ".tmp-abcdef", long_ago);
  const auto bytes = static_cast<int64_t>(fs::file_size(FileOf(old)));
  ModuleCache limited(
      {.folder = folder_.string(), .max_disk_bytes = 2 * bytes, .max_memory_bytes = 16});
  EXPECT_EQ(Get(limited, fresh), "image of new");
  EXPECT_FALSE(fs::exists(FileOf(old)));
  EXPECT_TRUE(fs::exists(FileOf(used)));
  EXPECT_TRUE(fs::exists(FileOf(fresh)));
  EXPECT_EQ(Files(), 2u);
  // Memory contains one image of 12 bytes; the others come from disk.
  compiled_ = 0;
  EXPECT_EQ(Get(limited, used), "image of use");
  EXPECT_EQ(Get(limited, fresh), "image of new");
  EXPECT_EQ(compiled_, 0);
}

TEST_F(ModuleCacheTest, WithoutAFolderMemoryServes) {
  std::ofstream file(folder_);  // a file where the folder should be
  for (const std::string& folder : {std::string(), folder_.string()}) {
    ModuleCache cache({.folder = folder});
    compiled_ = 0;
    EXPECT_EQ(Get(cache, Source("a")), "image of a");
    EXPECT_EQ(Get(cache, Source("a")), "image of a");
    EXPECT_EQ(compiled_, 1);
  }
}

}  // namespace
}  // namespace mendel::cuda
