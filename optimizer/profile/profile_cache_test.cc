#include "optimizer/profile/profile_cache.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace mendel {
namespace {

TEST(ProfileCache, KeepsEntriesAcrossOpens) {
  const std::string path = testing::TempDir() + "/profiles_test/a.sqlite";
  std::remove(path.c_str());
  {
    auto cache = ProfileCache::Open(path);
    ASSERT_TRUE(cache.ok()) << cache.status();
    EXPECT_FALSE((*cache)->Get("timing", "k").has_value());
    EXPECT_TRUE((*cache)->Put("timing", "k", std::string("v\0w", 3)).ok());
    EXPECT_TRUE((*cache)->Put("timing", "k", std::string("x\0y", 3)).ok());
  }
  auto cache = ProfileCache::Open(path);
  ASSERT_TRUE(cache.ok());
  EXPECT_EQ((*cache)->Get("timing", "k"), std::string("x\0y", 3));
  EXPECT_FALSE((*cache)->Get("verdict", "k").has_value());
  EXPECT_TRUE((*cache)->Verify().ok());
  const auto stats = (*cache)->Stats();
  ASSERT_TRUE(stats.ok());
  ASSERT_EQ(stats->size(), 1u);
  EXPECT_EQ((*stats)[0].entries, 1);
  EXPECT_EQ(*(*cache)->Prune(1), 0);
  EXPECT_EQ(*(*cache)->Prune(-1), 1);
}

TEST(ProfileCache, RefusesOtherFiles) {
  const std::string path = testing::TempDir() + "/not_a_cache.sqlite";
  std::ofstream(path) << std::string(5000, 'x');
  EXPECT_EQ(ProfileCache::Open(path).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mendel
