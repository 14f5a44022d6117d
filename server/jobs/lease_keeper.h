// Keeps a job's lease while its worker runs, forwards its progress, and notices the order to stop.
#ifndef MENDEL_SERVER_JOBS_LEASE_KEEPER_H_
#define MENDEL_SERVER_JOBS_LEASE_KEEPER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/jobs/job_attempt.h"
#include "server/jobs/watch_worker.h"

namespace mendel::server {

/// Not thread-safe. Temporary store errors are retried until the lease would have ended.
class LeaseKeeper {
 public:
  /// `stoppable`: the worker delivers its result so far at SIGTERM; others are killed at once.
  LeaseKeeper(const StoredJob& job, bool stoppable, RunnerContext& context);

  /// For WorkerCallbacks.
  void Progress(std::string_view line);
  Order Decide();
  /// Stores the worker's last progress, once the worker has ended.
  void ReportRest();

  /// True when another runner has the job: nothing may be written.
  bool lost() const { return lost_; }
  bool cancelled() const { return cancelled_; }

 private:
  void Renew(int64_t now);
  void Look(int64_t now);
  void ReportWhenDue(int64_t now);
  void Append(const v1::JobEvent& event);

  const StoredJob& job_;
  const bool stoppable_;
  RunnerContext& context_;
  int64_t renewed_;
  int64_t looked_;
  int64_t reported_ = 0;
  int64_t cancelled_at_ = 0;
  v1::Progress progress_;
  std::string reported_phase_;
  bool news_ = false;
  std::vector<std::string> warnings_;
  int warned_ = 0;
  bool lost_ = false;
  bool cancelled_ = false;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_LEASE_KEEPER_H_
