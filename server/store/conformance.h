// The tests that every JobStore passes, whatever is behind it. An executable of tests lists the
// sources conformance_*.cc and says
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, JobStoreConformance, testing::Values(BackendParam{...}),
//   BackendName);
#ifndef MENDEL_SERVER_STORE_CONFORMANCE_H_
#define MENDEL_SERVER_STORE_CONFORMANCE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/clock.h"
#include "server/store/job_store.h"

namespace mendel::server {

/// A clock that a test sets.
class TestClock final : public Clock {
 public:
  int64_t WallMicros() const override { return wall_; }
  int64_t SteadyMicros() const override { return steady_; }
  void Set(int64_t wall_micros) { wall_ = wall_micros; }
  void Advance(int64_t micros) {
    wall_ += micros;
    steady_ += micros;
  }

 private:
  std::atomic<int64_t> wall_ = 1'700'000'000'000'000;
  std::atomic<int64_t> steady_ = 1;
};

/// A folder of its own, removed at the end. In memory where the machine has such a place: killed
/// processes lose nothing there either, and only the loss of power would.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// One empty database, which can be opened several times, also by other processes.
class StoreBackend {
 public:
  virtual ~StoreBackend() = default;
  virtual absl::StatusOr<std::unique_ptr<JobStore>> Open(const Clock& clock) = 0;
};

struct BackendParam {
  std::string name;
  /// Null with a reason on standard output when this machine cannot have it: the tests then say
  /// SKIP.
  std::function<std::unique_ptr<StoreBackend>()> make;
};
inline std::string BackendName(const testing::TestParamInfo<BackendParam>& info) {
  return info.param.name;
}
inline void PrintTo(const BackendParam& param, std::ostream* out) { *out << param.name; }

class JobStoreConformance : public testing::TestWithParam<BackendParam> {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// A job in the queue.
  StoredJob Submit(const std::string& client = "alice", int32_t priority = 0,
                   const std::string& request_id = "");
  /// The next job, leased for a minute from the clock's now; fails the test when there is none.
  StoredJob Claim(const std::string& owner = "worker");
  v1::JobState StateOf(const std::string& name);

  TestClock clock_;
  std::unique_ptr<StoreBackend> backend_;
  std::unique_ptr<JobStore> store_;
};

/// A spec that differs from others of another seed.
v1::JobSpec SpecOf(uint64_t seed);
/// A plan with a well-formed blob; its name follows from `seed`.
v1::Plan PlanOf(uint64_t seed, const std::string& model = "models/m");
Outcome Succeeded(uint64_t plan_seed);
std::vector<std::string> NamesOf(const std::vector<StoredJob>& jobs);
/// Runs `body` in as many threads at once.
void InThreads(int count, const std::function<void(int)>& body);
/// Runs `body` in a child process, started while this one has no other threads; returns its pid.
/// The body's value is the exit code.
int InChild(const std::function<int()>& body);
/// Waits for a child; its exit code, or minus the signal that killed it.
int WaitForChild(int pid);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_CONFORMANCE_H_
