#include "kernels/cuda/testing/guarded_cases.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>

#include "base/check.h"
#include "base/status.h"

namespace mendel::cuda {
namespace {

constexpr int kCaseEndedTheChild = 3;
constexpr auto kPoll = std::chrono::milliseconds(20);

std::chrono::steady_clock::duration Duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

/// The reason for the end of a child; nullopt if it ended normally.
std::optional<std::string> Ended(int status) {
  if (WIFSIGNALED(status)) return Cat("the process ended by signal ", WTERMSIG(status));
  if (WEXITSTATUS(status) == 0) return std::nullopt;
  return Cat("the process ended with exit code ", WEXITSTATUS(status));
}

}  // namespace

absl::StatusOr<int> ExitCodeInChild(const std::function<int()>& run) {
  std::fflush(nullptr);  // or the child writes it again
  const pid_t child = fork();
  if (child < 0) return InternalError("no process can be made");
  if (child == 0) {
    const int code = run();
    std::fflush(nullptr);
    _exit(code);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
    return InternalError("the process ended by signal ", WTERMSIG(status));
  return WEXITSTATUS(status);
}

/// State in shared memory, which outlives a child.
struct GuardedCases::Shared {
  std::atomic<int> begun = 0;     ///< number of the last case that was begun
  std::atomic<int> finished = 0;  ///< and of the last one that is over
  std::atomic<int> failures = 0;
  std::atomic<bool> given_up = false;
  std::atomic<int> parts = 0;                      ///< that are over
  std::atomic<int> runs = 0, failures_before = 0;  ///< of the current part
  char description[1000] = {};                     ///< the last case that was begun
};

GuardedCases::GuardedCases(const GuardLimits& limits)
    : limits_(limits),
      end_(std::chrono::steady_clock::now() + Duration(limits.seconds)),
      shared_([] {
        void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        MENDEL_CHECK(memory != MAP_FAILED);
        return new (memory) Shared;
      }()) {}

GuardedCases::~GuardedCases() { munmap(shared_, sizeof(Shared)); }

void GuardedCases::Fail(const std::string& description, const std::string& why) {
  ++shared_->failures;
  std::printf("FAILED: %s: %s\n", description.c_str(), why.c_str());
  std::fflush(stdout);
}

absl::StatusOr<int> GuardedCases::Run(const std::function<void()>& cases) {
  while (true) {
    std::fflush(nullptr);  // or the child writes it again
    const pid_t child = fork();
    if (child < 0) return InternalError("no process can be made");
    if (child == 0) {
      cases();
      std::fflush(nullptr);
      _exit(0);
    }
    int status = 0, seen = -1;
    auto changed = std::chrono::steady_clock::now();
    bool killed = false;
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (const int now = shared_->begun + shared_->finished; now != seen) {
        seen = now;
        changed = std::chrono::steady_clock::now();
      }
      if (std::chrono::steady_clock::now() - changed > Duration(limits_.silent_seconds) && !killed)
        killed = kill(child, SIGKILL) == 0;
      std::this_thread::sleep_for(kPoll);
    }
    const std::optional<std::string> ended = Ended(status);
    if (!ended.has_value()) return shared_->failures.load();
    if (shared_->begun == shared_->finished) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == kCaseEndedTheChild) continue;
      return InternalError(*ended, " outside a case, after '", shared_->description, "'");
    }
    Fail(shared_->description,
         killed ? Cat("took longer than ", limits_.silent_seconds, " s") : *ended);
    shared_->finished = shared_->begun.load();
  }
}

void GuardedCases::Case(const std::string& description,
                        const std::function<absl::StatusOr<std::string>()>& run) {
  if (++case_ <= shared_->begun) return;  // an earlier child has run it
  std::snprintf(shared_->description, sizeof shared_->description, "%s", description.c_str());
  ++shared_->runs;
  shared_->begun = case_;
  const absl::StatusOr<std::string> wrong = run();
  if (!wrong.ok() || !wrong->empty())
    Fail(description, wrong.ok() ? *wrong : wrong.status().ToString());
  shared_->finished = case_;
  if (!wrong.ok()) _exit(kCaseEndedTheChild);  // without destructors, which would call the device
}

void GuardedCases::GiveUp(const std::string& why) {
  Fail("no more cases", why);
  shared_->given_up = true;
}

bool GuardedCases::GoesOn() const {
  return !shared_->given_up && shared_->failures < limits_.failures &&
         std::chrono::steady_clock::now() < end_;
}

void GuardedCases::EndPart(const std::string& what, size_t done, size_t all) {
  if (++part_ <= shared_->parts) return;
  const char* const why = shared_->given_up ? "; ended early: given up"
                          : shared_->failures >= limits_.failures
                              ? "; ended early: too many failures"
                              : "; ended early: the time is over";
  std::printf("%s: %zu of %zu, %d runs, %d wrong%s\n", what.c_str(), done, all,
              shared_->runs.load(), shared_->failures - shared_->failures_before,
              done < all ? why : "");
  shared_->runs = 0;
  shared_->failures_before = shared_->failures.load();
  shared_->parts = part_;
}

int GuardedCases::runs() const { return shared_->runs; }

}  // namespace mendel::cuda
