// The turns of clients in the queue: deficit round robin, in the tables of the SQL store.
//
// A job costs the seconds that its spec requests. In each round every client that has a waiting job
// gets a credit of one second; a job is taken when its client's credit covers its cost. Rounds in
// which nobody can pay pass at once. A client's row holds the round up to which its credit is
// spent, so that a claim changes one row: the next job has the smallest spent + cost, and of equal
// ones the client that has not been served for longest is first. Within a client the highest
// priority comes first, then the oldest job. A client whose queue was empty begins without credit.
// (Shreedhar and Varghese, SIGCOMM 1995.)
#ifndef MENDEL_SERVER_STORE_SQL_TURNS_H_
#define MENDEL_SERVER_STORE_SQL_TURNS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/job_row.h"
#include "server/store/job_store.h"
#include "server/store/sql.h"

namespace mendel::server {

/// Seconds that a job's spec requests, at least 1; 60 where it names no time.
int64_t CostOf(const v1::JobSpec& spec);
/// Called when a job of the client becomes PENDING, before its row says so.
absl::Status EnterQueue(SqlConnection& sql, const std::string& client);
/// A condition on `job`: a worker may take it. Its parameters are added to `values`.
std::string Takeable(const ClaimFilter& filter, std::vector<SqlValue>& values);
/// The job whose turn it is, locked; its cost is charged. nullopt: there is none, or somebody
/// changes it in this moment.
absl::StatusOr<std::optional<JobRow>> TakeTurn(SqlConnection& sql, const ClaimFilter& filter);
/// True if another job of this key waits or has a worker. An empty key is nobody's.
absl::StatusOr<bool> HasTwinInFlight(SqlConnection& sql, int64_t job, const std::string& work_key);
/// Forgets clients without waiting jobs.
absl::Status ForgetIdleClients(SqlConnection& sql);
/// Fills `queue_position` of the PENDING ones: the jobs that a single worker with every device
/// would take before.
absl::Status FillQueuePositions(SqlConnection& sql, std::vector<JobRow>& rows);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_SQL_TURNS_H_
