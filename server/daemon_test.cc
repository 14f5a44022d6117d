// The daemon from start to drained, its metrics endpoint, and the check of its configuration.
#include "server/daemon.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/status.h"
#include "google/rpc/error_details.pb.h"
#include "server/http_listener.h"
#include "server/http_test_client.h"
#include "server/observed_store.h"

namespace mendel::server {
namespace {

std::string NewDaemonFolder() {
  std::string pattern = std::filesystem::temp_directory_path() / "mendel-daemon-XXXXXX";
  return mkdtemp(pattern.data()) == nullptr ? "" : pattern;
}

TEST(Daemon, StartsServesDrainsAndStartsAgain) {
  const std::string folder = NewDaemonFolder();
  ServerOptions options;
  options.listen = Cat("unix:", folder, "/socket,127.0.0.1:0");
  options.data = folder + "/data";
  options.metrics_listen = "127.0.0.1:0";
  options.http_port = "0";
  options.concurrent_jobs = 0;
  options.runner.other_devices = {"cuda"};
  std::string text;
  Logger log(LogLevel::kInfo, SystemClock(), [&](const std::string& line) { text += line + "\n"; });
  for (int start = 0; start < 2; ++start) {
    auto daemon = Daemon::Start(options, {"1.2.3", "abc"}, SystemClock(), log);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    (*daemon)->Tick();
    (*daemon)->Reload();
    const std::string page =
        Fetch((*daemon)->metrics_port(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(page.substr(0, 15), "HTTP/1.1 200 OK");
    EXPECT_NE(page.find("mendel_build_info{version=\"1.2.3\",commit=\"abc\"} 1\n"),
              std::string::npos)
        << page;
    EXPECT_NE(page.find("mendel_jobs{state=\"pending\"} 0\n"), std::string::npos);
    EXPECT_NE(page.find("mendel_queue_depth{device=\"cpu\"} 0\n"), std::string::npos);
    EXPECT_NE(page.find("mendel_queue_depth{device=\"cuda\"} 0\n"), std::string::npos)
        << "autoscalers need a number";
    EXPECT_NE(page.find("mendel_draining 0\n"), std::string::npos);
    const std::string web =
        Fetch((*daemon)->page_port(), "GET /api/session HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_NE(web.find("\"version\":\"1.2.3\""), std::string::npos) << web;
    (*daemon)->Drain();
  }
  EXPECT_NE(text.find("\"event\":\"drained\""), std::string::npos);
  EXPECT_EQ(text.find("\"level\":\"error\""), std::string::npos) << text;
  std::filesystem::remove_all(folder);
}

TEST(Daemon, IsNotReadyWithoutRoomForUploads) {
  const std::string folder = NewDaemonFolder();
  ServerOptions options;
  options.listen = Cat("unix:", folder, "/socket");
  options.data = folder + "/data";
  options.metrics_listen = "127.0.0.1:0";
  options.concurrent_jobs = 0;
  std::string text;
  Logger log(LogLevel::kInfo, SystemClock(), [&](const std::string& line) { text += line + "\n"; });
  for (const bool full : {false, true}) {
    options.max_store_bytes = 10;
    if (full) std::ofstream(folder + "/data/uploads/left") << "0123456789";
    auto daemon = Daemon::Start(options, {"1.2.3", "abc"}, SystemClock(), log);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    (*daemon)->Tick();
    const auto get = [&](const char* path) {
      return Fetch((*daemon)->metrics_port(), Cat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"));
    };
    const std::string page = get("/readyz");
    EXPECT_EQ(page.substr(0, 12), full ? "HTTP/1.1 503" : "HTTP/1.1 200") << page;
    EXPECT_NE(page.find("jobs: ready\n"), std::string::npos) << page;
    EXPECT_NE(page.find(full ? "uploads: not ready (RESOURCE_EXHAUSTED)" : "uploads: ready\n"),
              std::string::npos)
        << page;
    EXPECT_EQ(get("/livez").substr(0, 12), "HTTP/1.1 200");
    EXPECT_NE(get("/metrics").find(Cat("mendel_ready{check=\"uploads\"} ", full ? 0 : 1, "\n")),
              std::string::npos);
    EXPECT_EQ(text.find("\"not ready\"") != std::string::npos, full) << text;
    (*daemon)->Drain();
  }
  std::filesystem::remove_all(folder);
}

TEST(Daemon, WorkFolderIsMadeWhereItIsNamed) {
  const std::string folder = NewDaemonFolder();
  ServerOptions options;
  options.listen = Cat("unix:", folder, "/socket");
  options.data = folder + "/data";
  options.metrics_listen.clear();
  options.concurrent_jobs = 0;
  options.runner.work_folder = folder + "/scratch";
  Logger log(LogLevel::kInfo, SystemClock(), [](const std::string&) {});
  ASSERT_TRUE(Daemon::Start(options, {"1.2.3", "abc"}, SystemClock(), log).ok());
  const auto mode = std::filesystem::status(folder + "/scratch").permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_all);
  EXPECT_FALSE(std::filesystem::exists(folder + "/data/work"));
  std::filesystem::permissions(folder + "/scratch", std::filesystem::perms::all);
  EXPECT_FALSE(Daemon::Start(options, {"1.2.3", "abc"}, SystemClock(), log).ok())
      << "others can write there";
  options.runner.work_folder = folder + "/none/scratch";
  const absl::Status status = Daemon::Start(options, {"1.2.3", "abc"}, SystemClock(), log).status();
  EXPECT_EQ(std::string(status.message()).substr(0, 5), "work:") << status;
  std::filesystem::remove_all(folder);
}

TEST(Daemon, CheckConfigNamesWhatIsWrong) {
  const std::string folder = NewDaemonFolder();
  ServerOptions options;
  options.data = folder;
  EXPECT_TRUE(CheckConfig(options).ok());
  for (const char* path : {"/scratch", "/none/scratch"}) {
    options.runner.work_folder = folder + path;
    EXPECT_TRUE(CheckConfig(options).ok()) << "it will be made, if it can be";
  }
  options.runner.work_folder = "/tmp";
  EXPECT_TRUE(absl::IsInvalidArgument(CheckConfig(options))) << "others can write there";
  options.runner.work_folder = "/dev/null";
  EXPECT_TRUE(absl::IsInvalidArgument(CheckConfig(options)));
  options.runner.work_folder.clear();
  options.store = "postgresql://mendel@%2Fnowhere/postgres";
  EXPECT_EQ(std::string(CheckConfig(options).message()).substr(0, 6), "store:");
  options.store.clear();
  options.auth_file = folder + "/none";
  EXPECT_FALSE(CheckConfig(options).ok());
  options.auth_file.clear();
  options.grpc_use_ssl = true;
  options.grpc_server_cert = options.grpc_server_key = folder + "/cert";
  std::ofstream(options.grpc_server_cert) << "not a certificate";
  const absl::Status status = CheckConfig(options);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  std::filesystem::remove_all(folder);
}

TEST(ObservedStore, LogsAndTimesAttempts) {
  const std::string folder = NewDaemonFolder();
  std::string text;
  Logger log(LogLevel::kInfo, SystemClock(), [&](const std::string& line) { text += line + "\n"; });
  Metrics metrics;
  auto sqlite = OpenSqliteStore(folder + "/jobs.sqlite", SystemClock());
  ASSERT_TRUE(sqlite.ok()) << sqlite.status();
  auto tracer = Tracer::Open(folder + "/spans", "1", log);
  ASSERT_TRUE(tracer.ok()) << tracer.status();
  const auto jobs = ObserveStore(*std::move(sqlite), SystemClock(), {metrics, log, **tracer});
  v1::JobSpec spec;
  spec.mutable_optimize()->set_model("models/m");
  const auto submitted = jobs->Submit(spec, "alice", "", 0, {});
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  const int64_t later = SystemClock().WallMicros() + 60'000'000;
  auto claimed = jobs->Claim("worker", later, {{"cpu"}});
  ASSERT_TRUE(claimed.ok() && claimed->has_value()) << claimed.status();
  ASSERT_TRUE(jobs->Release((*claimed)->job.name(), (*claimed)->fence, false).ok());
  claimed = jobs->Claim("worker", later, {{"cpu"}});
  ASSERT_TRUE(claimed.ok() && claimed->has_value()) << claimed.status();
  Outcome outcome;
  google::rpc::ErrorInfo info;
  info.set_reason("MEMORY");
  outcome.error.set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
  outcome.error.set_message("node 'secret'");
  outcome.error.add_details()->PackFrom(info);
  ASSERT_TRUE(jobs->Finish((*claimed)->job.name(), (*claimed)->fence, outcome).ok());
  size_t at = 0;
  for (const char* part : {"job started", "alice", "job put back", "job started", "job failed",
                           submitted->job.name().c_str(), "\"reason\":\"MEMORY\""}) {
    at = text.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << " in order in\n" << text;
  }
  EXPECT_EQ(text.find("secret"), std::string::npos) << "no model content";
  EXPECT_NE(metrics.Text().find("mendel_job_duration_seconds_count 1\n"), std::string::npos)
      << metrics.Text();
  std::filesystem::remove_all(folder);
}

TEST(Http, OddRequests) {
  const auto listener = StartHttpListener("127.0.0.1:0", 2, [](const HttpRequest& request) {
    return HttpResponse{200, "text/plain",
                        Cat(request.path, " ", request.Parameter("b"), " ", request.Header("x-y"))};
  });
  ASSERT_TRUE(listener.ok()) << listener.status();
  const int port = (*listener)->port();
  // One that says nothing takes one of two places; the others are answered all the same.
  const int silent = Connect(port);
  EXPECT_NE(Fetch(port, "GET /a?b=c%20d HTTP/1.1\r\nX-Y:  z \r\n\r\n").find("\r\n\r\n/a c d z"),
            std::string::npos);
  EXPECT_NE(Fetch(port, "POST / HTTP/1.1\r\n\r\n").find("405"), std::string::npos);
  for (const char* bad :
       {"\r\n\r\n", "GET a HTTP/1.1\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/2\r\n\r\n",
        "GET / HTTP/1.1\r\nno header\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"}) {
    EXPECT_NE(Fetch(port, bad).find("400"), std::string::npos) << bad;
  }
  EXPECT_NE(Fetch(port, std::string(17000, 'a')).find("400"), std::string::npos);
  const std::string head = Fetch(port, "HEAD /abc HTTP/1.0\r\n\r\n");
  EXPECT_NE(head.find("Content-Length: 6"), std::string::npos);
  EXPECT_EQ(head.find("/abc"), std::string::npos);
  close(silent);
  EXPECT_FALSE(StartHttpListener("nonsense", 1, {}).ok());
}

}  // namespace
}  // namespace mendel::server
