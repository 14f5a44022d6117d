// Keeps a job's lease while its worker runs, passes its progress on, and notices when it is to end.
#ifndef MENDEL_SERVER_JOBS_LEASE_KEEPER_H_
#define MENDEL_SERVER_JOBS_LEASE_KEEPER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/jobs/job_attempt.h"
#include "server/jobs/watch_worker.h"

namespace mendel::server {

/// Not thread-safe. Store errors that may pass are waited out until the lease would have ended.
class LeaseKeeper {
 public:
  /// `stoppable`: SIGTERM makes the worker deliver what it has; other workers are killed at once.
  LeaseKeeper(const StoredJob& job, bool stoppable, RunnerContext& context);

  /// For WorkerCallbacks.
  void Progress(std::string_view line);
  Order Decide();
  /// What the worker told last, once it has ended.
  void TellRest();

  /// The job is no longer ours: nothing may be written.
  bool lost() const { return lost_; }
  bool cancelled() const { return cancelled_; }

 private:
  void Renew(int64_t now);
  void Look(int64_t now);
  void TellWhenDue(int64_t now);
  void Append(const v1::JobEvent& event);

  const StoredJob& job_;
  const bool stoppable_;
  RunnerContext& context_;
  int64_t renewed_;
  int64_t looked_;
  int64_t told_ = 0;
  int64_t cancelled_at_ = 0;
  v1::Progress progress_;
  std::string told_phase_;
  bool news_ = false;
  std::vector<std::string> warnings_;
  int warned_ = 0;
  bool lost_ = false;
  bool cancelled_ = false;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_LEASE_KEEPER_H_
