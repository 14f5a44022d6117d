// Tests of SQLite alone: the file, its versions, its damage. Tests of all stores are in
// conformance_*.cc.
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "absl/status/status.h"
#include "base/status.h"
#include "server/store/conformance.h"
#include "server/store/sql_schema.h"
#include "server/store/sqlite_database.h"

namespace mendel::server {
namespace {

class SqliteBackend final : public StoreBackend {
 public:
  absl::StatusOr<std::unique_ptr<JobStore>> Open(const Clock& clock) override {
    return OpenSqliteStore(folder_.path() + "/jobs.sqlite", clock);
  }

 private:
  TestFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, JobStoreConformance,
                         testing::Values(BackendParam{
                             "Sqlite", [] { return std::make_unique<SqliteBackend>(); }}),
                         BackendName);

class SqliteStore : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<JobStore>> Open() { return OpenSqliteStore(path_, clock_); }
  /// Runs SQL behind the store's back.
  void Execute(const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
  }

  TestClock clock_;
  TestFolder folder_;
  std::string path_ = folder_.path() + "/jobs.sqlite";
};

/// A file written by version 1, with an ended job and its plan.
constexpr char kVersion1[] = R"(
CREATE TABLE schema_version (version BIGINT NOT NULL);
CREATE TABLE job (id INTEGER PRIMARY KEY AUTOINCREMENT, name BLOB NOT NULL UNIQUE, client BLOB NOT NULL, request_id BLOB NOT NULL,
  state BIGINT NOT NULL, priority BIGINT NOT NULL, lease_owner BLOB NOT NULL, lease_until BIGINT NOT NULL, fence BIGINT NOT NULL,
  ended BIGINT NOT NULL, body BLOB NOT NULL);
CREATE UNIQUE INDEX job_request ON job (client, request_id) WHERE length(request_id) > 0;
CREATE INDEX job_state ON job (state, client, priority);
CREATE INDEX job_client ON job (client, id);
CREATE TABLE event (job BIGINT NOT NULL REFERENCES job (id) ON DELETE CASCADE, sequence BIGINT NOT NULL, kind BIGINT NOT NULL,
  body BLOB NOT NULL, PRIMARY KEY (job, sequence));
CREATE TABLE model (id INTEGER PRIMARY KEY AUTOINCREMENT, name BLOB NOT NULL UNIQUE, body BLOB NOT NULL);
CREATE TABLE plan (id INTEGER PRIMARY KEY AUTOINCREMENT, name BLOB NOT NULL UNIQUE, model BLOB NOT NULL, body BLOB NOT NULL);
CREATE INDEX plan_model ON plan (model, id);
CREATE TABLE work (work_key BLOB PRIMARY KEY, plan BLOB NOT NULL REFERENCES plan (name) ON DELETE CASCADE);
CREATE INDEX work_plan ON work (plan);
INSERT INTO schema_version VALUES (1);
-- Job {name: "jobs/1" state: PENDING client: "a" create_time {seconds: 1} last_sequence: 1}, JobEvent {sequence: 1 state: PENDING}
INSERT INTO job VALUES (1, CAST('jobs/1' AS BLOB), CAST('a' AS BLOB), x'', 1, 0, x'', 0, 0, 0, x'0A066A6F62732F311801220161320208016001');
INSERT INTO event VALUES (1, 1, 1, x'08011801');
-- Plan {name: "plans/1" model: "models/1"}
INSERT INTO plan VALUES (1, CAST('plans/1' AS BLOB), CAST('models/1' AS BLOB), x'0A07706C616E732F3122086D6F64656C732F31');
INSERT INTO work VALUES (CAST('w' AS BLOB), CAST('plans/1' AS BLOB));
)";

TEST_F(SqliteStore, OpensAFileOfVersion1) {
  Execute(kVersion1);
  const auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(*(*store)->Check(), std::vector<std::string>());
  EXPECT_EQ((*store)->GetJob("jobs/1")->job.client(), "a");
  EXPECT_EQ((*store)->GetPlan("plans/1")->model(), "models/1");
  EXPECT_TRUE((*store)->FindPlan("w")->has_value());
  EXPECT_EQ((*store)->ListJobs({.states = {}, .client = "", .project = ""}, 9, "")->items.size(),
            1U);
  EXPECT_EQ((*store)->ListPlans("", "", 9, "")->items.size(), 1U) << "of the project default";
  EXPECT_EQ((*store)->ListPlans("other", "", 9, "")->items.size(), 0U);
  EXPECT_EQ((*(*store)->Claim("worker", 1, {}))->job.name(), "jobs/1");
}

TEST_F(SqliteStore, AnsweredRequestsAreOfTheDefaultProjectAfterwards) {
  Execute(kVersion1);
  const auto steps = SchemaSteps();
  {
    const auto database = OpenSqliteDatabase(path_);
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE(Migrate(**database, {steps.begin(), steps.begin() + 4}).ok());
    ASSERT_TRUE((*database)
                    ->Write([](SqlConnection& sql) {
                      return sql
                          .Run(
                              "INSERT INTO request (client, request_id, spec, operation, answered) "
                              "VALUES (?1, ?2, ?3, ?4, 7)",
                              {"alice", "id", SpecOf(1).SerializeAsString(), "plans/1"})
                          .status();
                    })
                    .ok());
  }
  const auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->FindRequest("alice", "id", SpecOf(1))->value_or(""), "plans/1");
  v1::JobSpec other;
  other.mutable_optimize()->set_model("projects/a/models/m");
  EXPECT_FALSE((*store)->FindRequest("alice", "id", other)->has_value());
}

TEST_F(SqliteStore, AMigrationIsAllOrNothing) {
  Execute(kVersion1);
  auto steps = SchemaSteps();
  steps.push_back(
      {"ALTER TABLE plan ADD COLUMN color BIGINT NOT NULL DEFAULT 7", "this is no SQL"});
  {
    const auto database = OpenSqliteDatabase(path_);
    ASSERT_TRUE(database.ok());
    EXPECT_FALSE(Migrate(**database, steps).ok());
  }
  EXPECT_TRUE(Open().ok()) << "still of the version before";
  steps.back().pop_back();
  const auto database = OpenSqliteDatabase(path_);
  ASSERT_TRUE(Migrate(**database, steps).ok());
  ASSERT_TRUE(Migrate(**database, steps).ok()) << "once is enough";
  ASSERT_TRUE((*database)
                  ->Read([](SqlConnection& sql) -> absl::Status {
                    const auto rows = sql.Run("SELECT color FROM plan", {});
                    EXPECT_EQ(rows->front().Int(0), 7);
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kFailedPrecondition)
      << "a later version is refused";
}

TEST_F(SqliteStore, ManyProcessesCreateOneFile) {
  constexpr int kProcesses = 6;
  // The race is in the first moments of a file, so there are many files.
  for (int file = 0; file < 20; ++file) {
    const std::string path = Cat(folder_.path(), "/race", file, ".sqlite");
    std::vector<int> children;
    for (int i = 0; i < kProcesses; ++i) {
      children.push_back(InChild([&] {
        const auto store = OpenSqliteStore(path, clock_);
        const absl::Status status =
            store.ok() ? (*store)->Submit(SpecOf(1), "a", "", 0, {}).status() : store.status();
        EXPECT_TRUE(status.ok()) << status;
        return status.ok() ? 0 : 1;
      }));
    }
    for (const int child : children) EXPECT_EQ(WaitForChild(child), 0);
    const auto store = OpenSqliteStore(path, clock_);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->CountJobs()->at(v1::JOB_STATE_PENDING), kProcesses) << path;
  }
}

TEST_F(SqliteStore, AClaimOfNothingChangesNothing) {
  const auto store = Open();
  ASSERT_TRUE(store.ok());
  const uint64_t before = (*store)->WaitForChange(0, 0);
  EXPECT_EQ(*(*store)->Claim("worker", 1, {}), std::nullopt);
  EXPECT_EQ((*store)->WaitForChange(before, 0), before)
      << "idle workers would wake each other for ever";
}

TEST_F(SqliteStore, BodiesThatShareACommitFailAlone) {
  ASSERT_TRUE(Open().ok());
  const auto database = OpenSqliteDatabase(path_);
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE((*database)
                  ->Write([](SqlConnection& sql) {
                    return sql.Run("CREATE TABLE t (x INTEGER)", {}).status();
                  })
                  .ok());
  // The first writer blocks the others until all wait behind it; they then come as one group.
  constexpr int kWriters = 8;
  std::atomic<int> begun = 0;
  std::vector<absl::Status> ends(kWriters);
  InThreads(kWriters, [&](int i) {
    const bool first = begun++ == 0;
    ends[static_cast<size_t>(i)] = (*database)->Write([&](SqlConnection& sql) -> absl::Status {
      while (first && begun < kWriters) std::this_thread::yield();
      MENDEL_RETURN_IF_ERROR(sql.Run("INSERT INTO t VALUES (?1)", {int64_t{i}}).status());
      return i % 2 == 0 ? absl::OkStatus() : absl::AbortedError(Cat(i));
    });
  });
  for (int i = 0; i < kWriters; ++i) {
    EXPECT_EQ(ends[static_cast<size_t>(i)],
              i % 2 == 0 ? absl::OkStatus() : absl::AbortedError(Cat(i)));
  }
  // A body whose failure ends the whole transaction: the others run again one by one.
  begun = 0;
  InThreads(kWriters, [&](int i) {
    const bool first = begun++ == 0;
    ends[static_cast<size_t>(i)] = (*database)->Write([&](SqlConnection& sql) -> absl::Status {
      while (first && begun < kWriters) std::this_thread::yield();
      MENDEL_RETURN_IF_ERROR(sql.Run("INSERT INTO t VALUES (?1)", {int64_t{100 + i}}).status());
      return i == 3 ? sql.Run("INSERT OR ROLLBACK INTO schema_version VALUES (NULL)", {}).status()
                    : absl::OkStatus();
    });
  });
  for (int i = 0; i < kWriters; ++i)
    EXPECT_EQ(ends[static_cast<size_t>(i)].ok(), i != 3) << ends[static_cast<size_t>(i)];
  std::vector<int64_t> found;
  ASSERT_TRUE((*database)
                  ->Read([&](SqlConnection& sql) -> absl::Status {
                    MENDEL_ASSIGN_OR_RETURN(const SqlRows rows,
                                            sql.Run("SELECT x FROM t ORDER BY x", {}));
                    for (const SqlRow& row : rows) found.push_back(row.Int(0));
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(found, (std::vector<int64_t>{0, 2, 4, 6, 100, 101, 102, 104, 105, 106, 107}));
}

TEST_F(SqliteStore, FoldersThatCannotBeWrittenAreRefused) {
  EXPECT_EQ(OpenSqliteStore(folder_.path() + "/none/jobs.sqlite", clock_).status().code(),
            absl::StatusCode::kPermissionDenied);
  ASSERT_TRUE(Open().ok());
  // Neither a new file nor the old one is writable. (The superuser may write everywhere, so a child
  // process changes its user.)
  ASSERT_EQ(chmod(folder_.path().c_str(), 0555), 0);
  EXPECT_EQ(WaitForChild(InChild([&] {
              if (geteuid() == 0 && setuid(65534) != 0) return 3;
              const auto old = Open();
              const auto fresh = OpenSqliteStore(folder_.path() + "/new.sqlite", clock_);
              return int{old.status().code() != absl::StatusCode::kPermissionDenied} +
                     2 * int{fresh.status().code() != absl::StatusCode::kPermissionDenied};
            })),
            0);
  ASSERT_EQ(chmod(folder_.path().c_str(), 0700), 0);
}

TEST_F(SqliteStore, AFileThatCannotBeOpenedAnyMoreIsUnavailable) {
  auto database = OpenSqliteDatabase(path_);  // its readers are opened when they are needed
  ASSERT_TRUE(database.ok()) << database.status();
  ASSERT_EQ(rename(path_.c_str(), (path_ + ".away").c_str()), 0);
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  const absl::Status status = (*database)->Read([](SqlConnection&) { return absl::OkStatus(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

TEST_F(SqliteStore, OtherFilesAreRefused) {
  FILE* file = std::fopen(path_.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs(
      "This is a text, and long enough to be looked at as the header of a database that it is not. "
      "It goes on to 100 bytes.",
      file);
  std::fclose(file);
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss) << Open().status();
}

TEST_F(SqliteStore, CheckFindsWhatIsWrong) {
  const auto store = Open();
  ASSERT_TRUE(store.ok());
  const auto violations = [&] { return static_cast<int>((*store)->Check()->size()); };
  const std::string name = (*store)->Submit(SpecOf(1), "a", "", 0, {})->job.name();
  EXPECT_EQ(violations(), 0);
  Execute("UPDATE job SET state = 5");
  EXPECT_EQ(violations(), 1) << "the columns disagree with the message";
  Execute("UPDATE job SET state = 1, lease_owner = x'41'");
  EXPECT_EQ(violations(), 1) << "a worker holds what is pending";
  Execute("UPDATE job SET lease_owner = x''; DELETE FROM event");
  EXPECT_EQ(violations(), 2) << "the journal ends elsewhere, in another state";
  Execute("UPDATE job SET body = x'ff'");
  EXPECT_EQ(violations(), 1) << "an unreadable message";
  EXPECT_EQ((*store)->GetJob(name).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ((*store)->ReferencedBlobs().status().code(), absl::StatusCode::kDataLoss)
      << "what cannot be read must not become garbage";
  Execute(
      "DELETE FROM job; INSERT INTO event VALUES (77, 1, 1, x'08011801'); INSERT INTO work VALUES "
      "(x'41', x'42')");
  EXPECT_EQ(violations(), 2) << "events of no job, work without its plan";
}

}  // namespace
}  // namespace mendel::server
