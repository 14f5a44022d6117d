#include "runtime/device_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/status.h"

namespace mendel {
namespace {

class DeviceLocks : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / Cat("locks-", ::getpid());
    std::filesystem::create_directories(folder_);
    ::setenv("MENDEL_LOCK_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("MENDEL_LOCK_DIR");
    std::filesystem::remove_all(folder_);
  }
  std::filesystem::path folder_;
};

TEST_F(DeviceLocks, ExcludeEachOther) {
  auto first = DeviceLock::Take("GPU-1", {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(DeviceLock::Take("GPU-2", {.seconds = 0}).ok()) << "another device";
  std::vector<std::string> reported;
  const auto second = DeviceLock::Take(
      "GPU-1",
      {.seconds = 0.12, .report = [&](const std::string& text) { reported.push_back(text); }});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              testing::HasSubstr((folder_ / "mendel-GPU-1.lock").string()));
  EXPECT_THAT(reported,
              testing::ElementsAre(testing::HasSubstr("another process that measures on GPU-1")));
  const std::atomic<bool> interrupted = true;
  EXPECT_EQ(DeviceLock::Take("GPU-1", {.interrupted = &interrupted}).status().code(),
            absl::StatusCode::kCancelled);
  first->reset();
  EXPECT_TRUE(DeviceLock::Take("GPU-1", {.seconds = 0}).ok());
}

TEST_F(DeviceLocks, AreWaitedFor) {
  auto first = DeviceLock::Take("GPU-1", {});
  ASSERT_TRUE(first.ok()) << first.status();
  std::atomic<bool> waits = false;
  std::thread holder([&] {
    while (!waits) std::this_thread::yield();
    first->reset();
  });
  EXPECT_TRUE(DeviceLock::Take(
                  "GPU-1", {.seconds = 600, .report = [&](const std::string&) { waits = true; }})
                  .ok());
  holder.join();
  EXPECT_TRUE(waits);
}

TEST_F(DeviceLocks, EndWithTheirProcess) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto lock = DeviceLock::Take("GPU-1", {});
    const char answer = lock.ok() ? 'y' : 'n';
    if (::write(ready[1], &answer, 1) == 1) ::pause();
    ::_exit(1);
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_FALSE(DeviceLock::Take("GPU-1", {.seconds = 0}).ok());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(DeviceLock::Take("GPU-1", {.seconds = 0}).ok());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(DeviceLocks, AFileThatWasRemovedLocksNothing) {
  auto first = DeviceLock::Take("GPU-1", {});
  ASSERT_TRUE(first.ok());
  std::filesystem::remove(folder_ / "mendel-GPU-1.lock");
  const auto second = DeviceLock::Take("GPU-1", {.seconds = 0});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE(DeviceLock::Take("GPU-1", {.seconds = 0}).ok()) << "the new file is locked";
}

TEST_F(DeviceLocks, BadPlacesAreReported) {
  EXPECT_TRUE(absl::IsInvalidArgument(DeviceLock::Take("../x", {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DeviceLock::Take("", {}).status()));
  std::filesystem::create_symlink("/dev/null", folder_ / "mendel-GPU-3.lock");
  EXPECT_TRUE(absl::IsUnavailable(DeviceLock::Take("GPU-3", {.seconds = 0}).status()))
      << "links are not followed";
  ::setenv("MENDEL_LOCK_DIR", (folder_ / "none").c_str(), 1);
  const auto nowhere = DeviceLock::Take("GPU-1", {.seconds = 0});
  EXPECT_TRUE(absl::IsUnavailable(nowhere.status()));
  EXPECT_THAT(std::string(nowhere.status().message()),
              testing::HasSubstr("none/mendel-GPU-1.lock"));
}

}  // namespace
}  // namespace mendel
