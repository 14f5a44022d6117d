// The persistent state of the service: jobs with their events, models and plans. One interface for
// SQLite (embedded) and for PostgreSQL; server/store/conformance.h tests both.
//
// Durability: when a call that changes something returns OK, the change survives kill -9 and loss
// of power. Errors: NotFound, AlreadyExists, FailedPrecondition and ResourceExhausted as stated;
// Unavailable when the database cannot be reached (try again); anything else is a bug or a broken
// disk. Times are Clock::WallMicros. Implementations are thread-safe.
//
// Every resource is of one project (server/store/project_name.h), which its name states. What a
// spec names is of one project, and so are its job, that job's plan, request id and twins.
//
// A worker keeps a job by a *lease* with a *fence*: a number that grows with every claim. Every
// write of a worker carries its fence. A write fails with Aborted if the worker lost its lease (it
// hung, its machine was cut off). At most one worker's result is ever accepted. (Gray and Cheriton,
// SOSP 1989: leases; Kleppmann: fencing tokens.)
#ifndef MENDEL_SERVER_STORE_JOB_STORE_H_
#define MENDEL_SERVER_STORE_JOB_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mendel/v1/jobs.pb.h"
#include "mendel/v1/models.pb.h"
#include "mendel/v1/plans.pb.h"

namespace mendel::server {

/// Payload of the ResourceExhausted of a full queue; a full disk has none.
inline constexpr char kQueueFull[] = "mendel/queue-full";

/// Payload of the ResourceExhausted of a client whose uploads fill its quota.
inline constexpr char kQuotaFull[] = "mendel/quota-full";

/// Limits that Submit checks in the transaction that adds the job (0: none), and facts about it.
struct SubmitOptions {
  int64_t pending_total = 0;
  int64_t pending_per_client = 0;
  std::string work_key = {};      ///< server/jobs/work_key.h; empty: the job has no twins
  std::string trace_parent = {};  ///< server/trace_parent.h; empty: none
};

/// A job as stored. `job.queue_position` is filled by Get and List for PENDING jobs; `job.client`
/// names its owner.
struct StoredJob {
  v1::Job job;
  std::string request_id;
  /// The device that the job's worker must have (server/store/spec_names.h); "cpu" by default.
  std::string device;
  std::string trace_parent;  ///< of the call that submitted it
  /// Set while a worker has the lease.
  std::string lease_owner;
  int64_t lease_until_micros = 0;
  int64_t fence = 0;
};

/// The jobs that a worker may take.
struct ClaimFilter {
  std::vector<std::string> devices = {};  ///< of the worker; server/store/spec_names.h
  int64_t running_per_client = 0;  ///< clients with so many jobs in work must wait; 0: no bound
};

/// The project of a listing ("": "default"); nullopt: all, which is for the server itself.
using ProjectFilter = std::optional<std::string>;

struct JobFilter {
  std::vector<v1::JobState> states;  ///< empty: all
  std::string client;                ///< empty: all
  ProjectFilter project = {};
};

/// A page, newest first, and the token of the next one (empty: there is none). A bad token is
/// InvalidArgument.
template <class T>
struct Page {
  std::vector<T> items;
  std::string next_token;
};

/// The result of a worker's job.
struct Outcome {
  v1::JobState state = v1::JOB_STATE_FAILED;  ///< SUCCEEDED, FAILED or CANCELLED
  google::rpc::Status error;                  ///< FAILED
  std::optional<v1::Plan> plan;               ///< stored with the outcome, in one transaction
  std::optional<v1::Verdict> verdict;
  std::string work_key =
      {};              ///< the plan answers this work from now on (RememberPlan); empty: none
  std::string bundle;  ///< `blobs/{sha256}/{size}` or empty
};

class JobStore {
 public:
  virtual ~JobStore() = default;

  /// Adds a PENDING job and its first event. The same client and non-empty request id give the
  /// job of the first call (in any state), or AlreadyExists when the specs differ.
  /// ResourceExhausted when a limit is reached. `job.name` is chosen here (`jobs/{uuid}` in the
  /// spec's project). InvalidArgument when the spec names two projects.
  /// NotFound when a rebind's plan does not exist. Its worker must have the plan's device
  /// (Claim).
  virtual absl::StatusOr<StoredJob> Submit(const v1::JobSpec& spec, const std::string& client,
                                           const std::string& request_id, int32_t priority,
                                           const SubmitOptions& options) = 0;
  /// The operation (`jobs/...`, `plans/...`) of this client's request with this id, or nullopt;
  /// AlreadyExists when it had another spec. An empty id is always unknown.
  virtual absl::StatusOr<std::optional<std::string>> FindRequest(const std::string& client,
                                                                 const std::string& request_id,
                                                                 const v1::JobSpec& spec) = 0;
  /// Stores that `operation` answered a request, without a job of its own, until
  /// DeleteEndedBefore. Returns the id's operation: this one, or that of an earlier call.
  /// AlreadyExists as above.
  virtual absl::StatusOr<std::string> RememberRequest(const std::string& client,
                                                      const std::string& request_id,
                                                      const v1::JobSpec& spec,
                                                      const std::string& operation) = 0;
  virtual absl::StatusOr<StoredJob> GetJob(const std::string& name) = 0;
  virtual absl::StatusOr<Page<StoredJob>> ListJobs(const JobFilter& filter, int page_size,
                                                   const std::string& token) = 0;
  /// PENDING becomes CANCELLED, RUNNING becomes CANCELLING; other states stay. Returns the job
  /// afterwards.
  virtual absl::StatusOr<StoredJob> CancelJob(const std::string& name) = 0;
  /// FailedPrecondition unless the job has ended.
  virtual absl::Status DeleteJob(const std::string& name) = 0;
  /// Events after `after`, in order, at most `limit`.
  virtual absl::StatusOr<std::vector<v1::JobEvent>> Events(const std::string& name, int64_t after,
                                                           int limit) = 0;

  /// The next job for a worker, RUNNING and leased until `lease_until_micros`; nullopt when there
  /// is none. Fair between clients by the seconds that their jobs request (sql_turns.h); within a
  /// client the highest priority comes first, then the oldest. Counts an attempt. What the filter
  /// leaves out stays in the queue, and so does a job whose twin (of the same work key) has a
  /// worker: the twin's plan will answer it.
  virtual absl::StatusOr<std::optional<StoredJob>> Claim(const std::string& owner,
                                                         int64_t lease_until_micros,
                                                         const ClaimFilter& filter) = 0;
  /// Aborted when the fence is not the job's or the lease was lost. Returns the state (RUNNING or
  /// CANCELLING).
  virtual absl::StatusOr<v1::JobState> Renew(const std::string& name, int64_t fence,
                                             int64_t lease_until_micros) = 0;
  /// Appends an event and gives it the next number. Progress also becomes `job.progress`. Older
  /// progress events may be thinned out.
  virtual absl::Status AppendEvent(const std::string& name, int64_t fence, v1::JobEvent event) = 0;
  /// Ends a job with its outcome and last event. The plan, if any, is stored with it.
  virtual absl::Status Finish(const std::string& name, int64_t fence, const Outcome& outcome) = 0;
  /// Returns a leased job to PENDING. The attempt is taken back (a server that drains) or `counts`
  /// (a worker that something killed).
  virtual absl::Status Release(const std::string& name, int64_t fence, bool counts) = 0;
  /// Takes jobs whose lease ended before `now_micros` from their workers. They become PENDING,
  /// CANCELLED if they were CANCELLING, or FAILED with a reason after `max_attempts` attempts.
  /// Returns their names.
  virtual absl::StatusOr<std::vector<std::string>> ExpireLeases(int64_t now_micros,
                                                                int max_attempts) = 0;
  /// Number of jobs per state, for metrics.
  virtual absl::StatusOr<std::map<v1::JobState, int64_t>> CountJobs() = 0;
  /// Number of PENDING jobs per device (StoredJob::device), for metrics.
  virtual absl::StatusOr<std::map<std::string, int64_t>> CountPendingByDevice() = 0;
  /// Blocks until something may have changed since `seen` (a number that an earlier call returned;
  /// 0 at first) or `timeout_micros` have passed; returns the new number. Changes by other
  /// processes are noticed within a second.
  virtual uint64_t WaitForChange(uint64_t seen, int64_t timeout_micros) = 0;

  /// Models and plans. Put of an existing one returns it.
  virtual absl::StatusOr<v1::Model> PutModel(const v1::Model& model) = 0;
  virtual absl::StatusOr<v1::Model> GetModel(const std::string& name) = 0;
  virtual absl::StatusOr<Page<v1::Model>> ListModels(const ProjectFilter& project, int page_size,
                                                     const std::string& token) = 0;
  /// FailedPrecondition while an unfinished job names it.
  virtual absl::Status DeleteModel(const std::string& name) = 0;
  virtual absl::StatusOr<v1::Plan> GetPlan(const std::string& name) = 0;
  /// `model`: of these alone; empty: all of the project.
  virtual absl::StatusOr<Page<v1::Plan>> ListPlans(const ProjectFilter& project,
                                                   const std::string& model, int page_size,
                                                   const std::string& token) = 0;
  virtual absl::Status DeletePlan(const std::string& name) = 0;
  /// A plan found earlier for the same work (model, options, device class), or nullopt. `work_key`:
  /// server/jobs/work_key.h.
  virtual absl::StatusOr<std::optional<v1::Plan>> FindPlan(const std::string& work_key) = 0;
  virtual absl::Status RememberPlan(const std::string& work_key, const std::string& plan) = 0;

  /// Counts an uploaded file (its BlobKey) towards its client's quota of `limit` bytes; once only,
  /// as long as it is charged. ResourceExhausted with payload kQuotaFull where it does not fit.
  virtual absl::Status ChargeUpload(const std::string& client, const std::string& file,
                                    int64_t bytes, int64_t limit) = 0;
  /// An upload that came to nothing is not counted.
  virtual absl::Status ForgetUpload(const std::string& client, const std::string& file) = 0;
  /// Forgets uploads that were charged before this time and whose file (`stored`: BlobKeys) is
  /// gone.
  virtual absl::Status ForgetUploadsBefore(int64_t wall_micros,
                                           const std::set<std::string>& stored) = 0;

  /// BlobKey of every blob that a model, plan or bundle names; garbage collection keeps these.
  virtual absl::StatusOr<std::vector<std::string>> ReferencedBlobs() = 0;
  /// Deletes ended jobs (and remembered requests) older than this time; returns how many jobs.
  virtual absl::StatusOr<int64_t> DeleteEndedBefore(int64_t wall_micros) = 0;
  /// Checks invariants (docs/service.md lists them); one sentence per violation, else empty.
  virtual absl::StatusOr<std::vector<std::string>> Check() = 0;
};

/// The embedded store: one SQLite file (WAL, synchronous=FULL), several processes on one machine.
/// Creates or migrates it. `clock` outlives it.
class Clock;
absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteStore(const std::string& path,
                                                          const Clock& clock);

/// A PostgreSQL database (`postgresql://...`), for several servers and workers on several machines.
/// Creates or migrates its tables. Unimplemented when this installation lacks the module,
/// libmendel_postgres.so (`module`: its file; empty: beside the executable or in ../lib).
absl::StatusOr<std::unique_ptr<JobStore>> OpenPostgresStore(const std::string& url,
                                                            const Clock& clock,
                                                            const std::string& module = "");

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_JOB_STORE_H_
