// The conformance suite against a real PostgreSQL, and kill -9 of it. SKIP, with the reason, where
// the module or initdb is missing.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>

#include "absl/status/status.h"
#include "base/random.h"
#include "base/status.h"
#include "server/store/conformance.h"
#include "server/store/postgres_module.h"
#include "server/store/postgres_server.h"

namespace mendel::server {
namespace {

/// One server for all tests, stopped at the end; null with the reason printed once when there is
/// none.
class SharedServer final : public testing::Environment {
 public:
  void TearDown() override { server_.reset(); }
  PostgresServer* Get() {
    if (server_ == nullptr && reason_.empty()) {
      auto started = Start();
      reason_ = started.ok() ? "" : started.status().ToString();
      if (started.ok()) server_ = *std::move(started);
    }
    if (server_ == nullptr) std::printf("SKIP: no PostgreSQL: %s\n", reason_.c_str());
    return server_.get();
  }

 private:
  static absl::StatusOr<std::unique_ptr<PostgresServer>> Start() {
    if (access(MENDEL_POSTGRES_MODULE, R_OK) != 0)
      return Unsupported("the module was not built (Debian's package libpq-dev)");
    return PostgresServer::Start();
  }
  std::unique_ptr<PostgresServer> server_;
  std::string reason_;
};

SharedServer& Shared() {
  // GoogleTest deletes it.
  static auto* const shared =
      static_cast<SharedServer*>(testing::AddGlobalTestEnvironment(new SharedServer));
  return *shared;
}
const bool kRegistered = (Shared(), true);

class PostgresBackend final : public StoreBackend {
 public:
  explicit PostgresBackend(std::string url) : url_(std::move(url)) {}
  absl::StatusOr<std::unique_ptr<JobStore>> Open(const Clock& clock) override {
    return OpenPostgresStore(url_, clock, MENDEL_POSTGRES_MODULE);
  }

 private:
  const std::string url_;
};

std::unique_ptr<StoreBackend> MakeBackend() {
  PostgresServer* const server = Shared().Get();
  if (server == nullptr) return nullptr;
  const auto schema = server->Schema();
  EXPECT_TRUE(schema.ok()) << schema.status();
  return schema.ok() ? std::make_unique<PostgresBackend>(server->Url(*schema)) : nullptr;
}

INSTANTIATE_TEST_SUITE_P(Postgres, JobStoreConformance,
                         testing::Values(BackendParam{"Postgres", &MakeBackend}), BackendName);

TEST(PostgresStore, UnreachableServersAreUnavailable) {
  if (Shared().Get() == nullptr) GTEST_SKIP();
  const TestClock clock;
  const auto store =
      OpenPostgresStore("postgresql://mendel@%2Fnowhere/postgres", clock, MENDEL_POSTGRES_MODULE);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kUnavailable) << store.status();
}

TEST(PostgresStore, WithoutItsModuleItIsUnimplemented) {
  const TestClock clock;
  EXPECT_EQ(OpenPostgresStore("postgresql://x", clock, "/nowhere/module.so").status().code(),
            absl::StatusCode::kUnimplemented);
}

/// Submits until it is stopped; acknowledged jobs are in `names`, and counted.
void SubmitUntil(JobStore& store, const std::atomic<bool>& stop, std::vector<std::string>& names,
                 std::atomic<uint64_t>& count) {
  for (int i = 0; !stop; ++i) {
    const auto job =
        store.Submit(SpecOf(1), "client", Cat("request ", names.size(), "/", i), 0, {});
    if (job.ok()) {
      names.push_back(job->job.name());
      ++count;
    }
    if (!job.ok()) {
      ASSERT_EQ(job.status().code(), absl::StatusCode::kUnavailable) << job.status();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

TEST(PostgresFaults, KilledServerLosesNothing) {
  PostgresServer* const server = Shared().Get();
  if (server == nullptr) GTEST_SKIP();
  const char* text = std::getenv("MENDEL_FAULT_MOMENTS");
  const int64_t moments = text == nullptr ? 2 : std::atoll(text);
  const TestClock clock;
  const auto schema = server->Schema();
  ASSERT_TRUE(schema.ok()) << schema.status();
  auto store = OpenPostgresStore(server->Url(*schema), clock, MENDEL_POSTGRES_MODULE);
  ASSERT_TRUE(store.ok()) << store.status();
  Rng rng(1);
  std::vector<std::string> names;
  for (int64_t moment = 0; moment < moments; ++moment) {
    std::atomic<bool> stop = false;
    std::atomic<uint64_t> count = 0;
    std::thread submitter([&] { SubmitUntil(**store, stop, names, count); });
    // The server is killed a random moment after this number of acknowledgements.
    const uint64_t wanted = rng.Below(30);
    while (count < wanted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::microseconds(rng.Below(5'000)));
    server->Kill();
    stop = true;
    submitter.join();
    const absl::Status restarted = server->Restart();
    ASSERT_TRUE(restarted.ok()) << restarted;
    // The same store continues with new connections.
    ASSERT_TRUE((*store)->Submit(SpecOf(1), "after", "", 0, {}).ok());
    // A check reads every journal, and their number grows.
    const bool look = moment % 10 == 0 || moment + 1 == moments;
    EXPECT_EQ(look ? *(*store)->Check() : std::vector<std::string>(), std::vector<std::string>());
  }
  std::set<std::string> kept;
  std::string token;
  do {
    const auto page = (*store)->ListJobs({}, 1000, token);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const StoredJob& job : page->items) kept.insert(job.job.name());
    token = page->next_token;
  } while (!token.empty());
  for (const std::string& name : names) EXPECT_TRUE(kept.contains(name)) << name;
  std::printf("%lld moments, %zu acknowledged jobs kept\n", static_cast<long long>(moments),
              names.size());
}

}  // namespace
}  // namespace mendel::server
