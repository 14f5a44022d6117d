#include "server/store/sql_turns.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include "base/status.h"

namespace mendel::server {
namespace {

constexpr int64_t kUnnamedSeconds = 60;
constexpr int64_t kMostSeconds = int64_t{365} * 24 * 3600;

/// The round of the client that was served last, and a number for the next one to be served.
struct Round {
  int64_t spent = 0;
  int64_t next = 1;
};

absl::StatusOr<Round> CurrentRound(SqlConnection& sql) {
  MENDEL_ASSIGN_OR_RETURN(
      const SqlRows rows,
      sql.Run("SELECT COALESCE(MAX(spent), 0), COALESCE(MAX(served), 0) FROM turn", {}));
  return Round{rows.front().Int(0), rows.front().Int(1) + 1};
}

absl::Status SetTurn(SqlConnection& sql, const std::string& client, int64_t spent, int64_t served) {
  return sql
      .Run(
          "INSERT INTO turn (client, spent, served) VALUES (?1, ?2, ?3) ON CONFLICT (client) DO "
          "UPDATE SET spent = excluded.spent, served = excluded.served",
          {client, spent, served})
      .status();
}

/// A condition on `job` that leaves out clients with as many jobs in work as they may have.
std::string BelowBound(int64_t running_per_client, std::vector<SqlValue>& values) {
  if (running_per_client <= 0) return "";
  values.emplace_back(int64_t{v1::JOB_STATE_RUNNING});
  values.emplace_back(int64_t{v1::JOB_STATE_CANCELLING});
  values.emplace_back(running_per_client);
  const size_t last = values.size();
  return Cat(" AND job.client NOT IN (SELECT client FROM job WHERE state IN (?", last - 2, ", ?",
             last - 1, ") GROUP BY client HAVING COUNT(*) >= ?", last, ")");
}

/// A condition on `job` that leaves out those whose twin has a worker.
std::string WithoutTwinInWork(std::vector<SqlValue>& values) {
  values.emplace_back(int64_t{v1::JOB_STATE_RUNNING});
  values.emplace_back(int64_t{v1::JOB_STATE_CANCELLING});
  return Cat(" AND NOT EXISTS (SELECT 1 FROM job AS twin WHERE length(job.work_key) > 0 AND ",
             "length(twin.work_key) > 0 AND twin.work_key = job.work_key AND twin.state IN (?",
             values.size() - 1, ", ?", values.size(), "))");
}

/// A client's waiting jobs in their order, while its turns are played through.
struct WaitingClient {
  int64_t spent = 0;
  int64_t served = 0;
  std::vector<std::pair<int64_t, int64_t>> jobs;  ///< id and cost
  size_t taken = 0;
};

absl::StatusOr<std::vector<WaitingClient>> WaitingClients(SqlConnection& sql) {
  MENDEL_ASSIGN_OR_RETURN(const Round round, CurrentRound(sql));
  MENDEL_ASSIGN_OR_RETURN(
      const SqlRows rows,
      sql.Run("SELECT job.id, job.client, job.cost, COALESCE(turn.spent, ?2), "
              "COALESCE(turn.served, 0) FROM job LEFT JOIN turn ON turn.client = job.client WHERE "
              "job.state = ?1 ORDER BY job.client, job.priority DESC, job.id",
              {int64_t{v1::JOB_STATE_PENDING}, round.spent}));
  std::vector<WaitingClient> clients;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || rows[i].Bytes(1) != rows[i - 1].Bytes(1))
      clients.push_back({rows[i].Int(3), rows[i].Int(4), {}, 0});
    clients.back().jobs.emplace_back(rows[i].Int(0), rows[i].Int(2));
  }
  return clients;
}

}  // namespace

int64_t CostOf(const v1::JobSpec& spec) {
  const google::protobuf::Duration& time =
      spec.has_compare_pair() ? spec.compare_pair().time_limit() : spec.optimize().budget().time();
  if (time.seconds() == 0 && time.nanos() == 0) return kUnnamedSeconds;
  return std::clamp<int64_t>(time.seconds(), 0, kMostSeconds) + (time.nanos() > 0 ? 1 : 0);
}

absl::Status EnterQueue(SqlConnection& sql, const std::string& client) {
  MENDEL_ASSIGN_OR_RETURN(const SqlRows waiting,
                          sql.Run("SELECT 1 FROM job WHERE state = ?1 AND client = ?2 LIMIT 1",
                                  {int64_t{v1::JOB_STATE_PENDING}, client}));
  if (!waiting.empty()) return absl::OkStatus();
  MENDEL_ASSIGN_OR_RETURN(const Round round, CurrentRound(sql));
  return SetTurn(sql, client, round.spent, round.next);
}

std::string Takeable(const ClaimFilter& filter, std::vector<SqlValue>& values) {
  values.emplace_back(int64_t{v1::JOB_STATE_PENDING});
  std::string condition = Cat("job.state = ?", values.size(), " AND (length(job.device) = 0");
  for (const std::string& device : filter.devices) {
    values.emplace_back(device);
    condition += Cat(" OR job.device = ?", values.size());
  }
  condition += ")";
  condition += BelowBound(filter.running_per_client, values);
  return condition + WithoutTwinInWork(values);
}

absl::StatusOr<std::optional<JobRow>> TakeTurn(SqlConnection& sql, const ClaimFilter& filter) {
  // Two claims at once must not both charge the same credit.
  MENDEL_RETURN_IF_ERROR(sql.Serialize());
  MENDEL_ASSIGN_OR_RETURN(const Round round, CurrentRound(sql));
  std::vector<SqlValue> values = {round.spent};
  const std::string condition = Takeable(filter, values);
  const std::string heads =
      Cat("SELECT id, client, cost, ROW_NUMBER() OVER (PARTITION BY client ORDER BY priority DESC, "
          "id) AS place FROM job WHERE ",
          condition);
  MENDEL_ASSIGN_OR_RETURN(
      const SqlRows next,
      sql.Run(Cat("SELECT head.id, head.client, COALESCE(turn.spent, ?1) + head.cost FROM (", heads,
                  ") AS head LEFT JOIN turn ON turn.client = head.client WHERE head.place = 1 "
                  "ORDER BY COALESCE(turn.spent, ?1) + head.cost, COALESCE(turn.served, 0), "
                  "head.id LIMIT 1"),
              values));
  std::optional<JobRow> result;
  if (next.empty()) return result;
  MENDEL_ASSIGN_OR_RETURN(
      const SqlRows rows,
      sql.Run(Cat("SELECT ", JobColumns(), " FROM job WHERE id = ?1 AND state = ?2{skip}"),
              {next.front().Int(0), int64_t{v1::JOB_STATE_PENDING}}));
  if (rows.empty()) return result;
  MENDEL_RETURN_IF_ERROR(SetTurn(sql, next.front().Bytes(1), next.front().Int(2), round.next));
  MENDEL_ASSIGN_OR_RETURN(result, ReadJob(rows.front()));
  return result;
}

absl::StatusOr<bool> HasTwinInFlight(SqlConnection& sql, int64_t job, const std::string& work_key) {
  if (work_key.empty()) return false;
  MENDEL_ASSIGN_OR_RETURN(
      const SqlRows rows,
      sql.Run("SELECT 1 FROM job WHERE work_key = ?1 AND length(work_key) > 0 AND id <> ?2 AND "
              "state IN (?3, ?4) LIMIT 1",
              {work_key, job, int64_t{v1::JOB_STATE_PENDING}, int64_t{v1::JOB_STATE_RUNNING}}));
  return !rows.empty();
}

absl::Status ForgetIdleClients(SqlConnection& sql) {
  return sql
      .Run("DELETE FROM turn WHERE client NOT IN (SELECT client FROM job WHERE state = ?1)",
           {int64_t{v1::JOB_STATE_PENDING}})
      .status();
}

absl::Status FillQueuePositions(SqlConnection& sql, std::vector<JobRow>& rows) {
  std::map<int64_t, v1::Job*> wanted;
  for (JobRow& row : rows) {
    if (row.stored.job.state() == v1::JOB_STATE_PENDING) wanted[row.id] = &row.stored.job;
  }
  if (wanted.empty()) return absl::OkStatus();
  MENDEL_ASSIGN_OR_RETURN(std::vector<WaitingClient> clients, WaitingClients(sql));
  // spent + cost, served, id, client: the smallest is next.
  using Turn = std::tuple<int64_t, int64_t, int64_t, size_t>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
  int64_t served = 0;
  const auto enter = [&](size_t index) {
    const WaitingClient& client = clients[index];
    if (client.taken == client.jobs.size()) return;
    const auto& [id, cost] = client.jobs[client.taken];
    turns.emplace(client.spent + cost, client.served, id, index);
  };
  for (size_t i = 0; i < clients.size(); ++i) {
    served = std::max(served, clients[i].served);
    enter(i);
  }
  for (int32_t position = 0; !turns.empty() && !wanted.empty(); ++position) {
    const auto [spent, before, id, index] = turns.top();
    turns.pop();
    if (const auto found = wanted.find(id); found != wanted.end()) {
      found->second->set_queue_position(position);
      wanted.erase(found);
    }
    WaitingClient& client = clients[index];
    client.spent = spent;
    client.served = ++served;
    ++client.taken;
    enter(index);
  }
  return absl::OkStatus();
}

}  // namespace mendel::server
