// The web page without a browser: its files and headers, who may see what, odd addresses and
// hostile names, results and downloads.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/status.h"
#include "mendel/plan.pb.h"
#include "runtime/plan_file.h"
#include "server/http_listener.h"
#include "server/http_test_client.h"
#include "server/rpc/handlers.h"
#include "server/rpc/test_server.h"
#include "server/web/downloads.h"
#include "server/web/page_files.h"
#include "server/web/web_page.h"

namespace mendel::server {
namespace {

using nlohmann::json;

constexpr char kHostile[] = "<img src=x onerror=alert(1)>\"'&</script>";

HttpResponse Get(WebPage& page, const std::string& target,
                 const std::string& headers = "Host: localhost\r\n") {
  const auto request = ParseHttpRequest(Cat("GET ", target, " HTTP/1.1\r\n", headers, "\r\n"));
  EXPECT_TRUE(request.ok()) << request.status();
  return page.Answer(*request);
}

json JsonOf(const HttpResponse& response) {
  EXPECT_EQ(response.code, 200) << response.body;
  return json::parse(response.body, nullptr, false);
}

BlobId Store(Environment& env, const std::string& bytes) {
  const BlobId blob{Sha256Hex(std::string_view(bytes)), static_cast<int64_t>(bytes.size())};
  auto writer = env.blobs.OpenUpload({"21234567-89ab-cdef-0123-456789abcdef", blob}, 0);
  EXPECT_TRUE(writer.ok() && (*writer)->Append(bytes).ok() && (*writer)->Finish().ok());
  return blob;
}

/// The bytes of a plan file with one mutant whose names are hostile, and one that is not UTF-8.
std::string PlanBytes(const std::string& folder) {
  plan::PlanInfo info;
  plan::AppliedMutant& mutant = *info.add_mutants();
  mutant.set_rule("conv_merge");
  mutant.add_where(kHostile);
  mutant.add_where("\xff\xfe");
  plan::MendedOutput& output = *mutant.add_mended();
  output.set_output(kHostile);
  output.set_elements(64);
  output.set_wrong_elements(8);
  for (const int64_t extent : {8, 8}) output.add_shape(extent);
  plan::BoxProto& box = *output.add_boxes();
  for (const int64_t begin : {0, 7}) box.add_begin(begin);
  for (const int64_t end : {8, 8}) box.add_end(end);
  plan::CertificateProto certificate;
  certificate.add_draws()->set_prime(uint64_t{1} << 63);
  const std::string info_bytes = info.SerializeAsString(),
                    certificate_bytes = certificate.SerializeAsString();
  const auto span = [](const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  };
  const std::string path = folder + "/made.plan";
  EXPECT_TRUE(WriteSections(
                  {{"info", {span(info_bytes)}}, {"certificate", {span(certificate_bytes)}}}, path)
                  .ok());
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Ends the next job with an outcome.
void Finish(Environment& env, const Outcome& outcome) {
  const auto job = env.jobs.Claim("worker", SystemClock().WallMicros() + 60'000'000, {});
  ASSERT_TRUE(job.ok() && job->has_value());
  v1::JobEvent event;
  event.set_warning(Cat(kHostile, "\n\x1b[31m"));
  EXPECT_TRUE(env.jobs.AppendEvent((*job)->job.name(), (*job)->fence, event).ok());
  EXPECT_TRUE(env.jobs.Finish((*job)->job.name(), (*job)->fence, outcome).ok());
}

Outcome PlanOutcome(Environment& env, const std::string& bytes) {
  const BlobId blob = Store(env, bytes);
  Outcome outcome;
  outcome.state = v1::JOB_STATE_SUCCEEDED;
  outcome.plan.emplace();
  outcome.plan->set_name("plans/" + blob.sha256);
  outcome.plan->set_blob(BlobName(blob));
  outcome.plan->set_size_bytes(blob.size);
  outcome.plan->set_speedup(1.5);
  return outcome;
}

TEST(Web, FilesStandAloneAndAreShutIn) {
  TestServer server;
  WebPage page(server.env(), "1.2.3", {});
  for (const auto& [path, type] :
       std::map<std::string, std::string>{{"/", "text/html; charset=utf-8"},
                                          {"/app.js", "text/javascript; charset=utf-8"},
                                          {"/style.css", "text/css; charset=utf-8"},
                                          {"/icon.svg", "image/svg+xml; charset=utf-8"}}) {
    const HttpResponse response = Get(page, path);
    EXPECT_EQ(response.code, 200) << path;
    EXPECT_EQ(response.type, type);
    for (const char* bad : {"https:", "innerHTML", "outerHTML", "insertAdjacent", "document.write",
                            "eval(", " style=", " onclick=", "localStorage"}) {
      EXPECT_EQ(response.body.find(bad), std::string::npos) << path << " holds " << bad;
    }
    const std::string head = HttpHead(response);
    for (const char* line :
         {"\r\nContent-Security-Policy: default-src 'self';", "frame-ancestors 'none'",
          "\r\nX-Frame-Options: DENY\r\n", "\r\nX-Content-Type-Options: nosniff\r\n",
          "\r\nReferrer-Policy: no-referrer\r\n"}) {
      EXPECT_NE(head.find(line), std::string::npos) << path << " lacks " << line;
    }
    EXPECT_EQ(head.find("unsafe"), std::string::npos);
  }
}

TEST(Web, OtherAddressesAreRefused) {
  TestServer server;
  WebPage page(server.env(), "1.2.3", {});
  const std::string job = server.SubmitSearch(server.MakeModel("model"));
  for (const char* path : {"/index.html", "/../etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd",
                           "/api", "/api/", "/api/jobs/", "/api/plan", "/api/models/x",
                           "/style.css/", "/app.js%00", "/api/session/x", "/api/jobs/x/y/z/w"}) {
    const HttpResponse response = Get(page, path);
    EXPECT_GE(response.code, 400) << path;
    EXPECT_LT(response.code, 500) << path;
    EXPECT_EQ(response.body.find(server.folder()), std::string::npos);
  }
  for (const char* path :
       {"/api/jobs/..", "/api/jobs/%2e%2e", "/api/jobs/00000000-0000-4000-8000-00000000000G",
        "/api/jobs?page_size=x", "/api/jobs?page_size=-1", "/api/jobs?state=JOB",
        "/api/jobs?page_token=x", "/api/jobs?page_size=99999999999999999999"}) {
    EXPECT_EQ(Get(page, path).code, 400) << path;
  }
  EXPECT_EQ(Get(page, "/api/jobs/00000000-0000-4000-8000-000000000000").code, 404);
  EXPECT_EQ(Get(page, Cat("/api/", job, "?after=-1")).code, 400);
  for (const char* what : {"/plan", "/bundle", "/report", "/etc"})
    EXPECT_EQ(Get(page, Cat("/api/", job, what)).code, 404) << what;
}

TEST(Web, TokensAsForRpcs) {
  std::string auth;
  TestServer server([&](ServerOptions& options) {
    auth = options.listen.substr(5) + ".auth";
    std::ofstream(auth) << AuthLine("looker", "reader") << AuthLine("shut", "none");
    options.auth_file = auth;
  });
  WebPage page(server.env(), "1.2.3", {});
  const std::string job = server.SubmitSearch(server.MakeModel("model"));
  server.WorkOnce(1);
  std::vector<std::string> paths = {"/api/session", "/api/jobs"};
  for (const char* what : {"", "/result", "/plan", "/log"})
    paths.push_back(Cat("/api/", job, what));
  for (const std::string& path : paths) {
    for (const std::string headers :
         {"", "Authorization: Bearer TOKEN-nobody\r\n", "Authorization: TOKEN-looker\r\n",
          "Authorization: Bearer TOKEN-shut\r\n", "Cookie: token=TOKEN-looker\r\n"}) {
      const HttpResponse response = Get(page, path, "Host: localhost\r\n" + headers);
      EXPECT_EQ(response.code, 401) << path << " " << headers;
      EXPECT_NE(HttpHead(response).find("\r\nWWW-Authenticate: Bearer\r\n"), std::string::npos);
    }
    EXPECT_EQ(Get(page, path + "?token=TOKEN-looker&authorization=Bearer+TOKEN-looker").code, 401);
    EXPECT_EQ(
        Get(page, path, "Host: mendel.example.org\r\nAuthorization: Bearer TOKEN-looker\r\n").code,
        200)
        << path;
  }
  EXPECT_EQ(Get(page, "/").code, 200) << "the page itself contains no data";
}

TEST(Web, GuessedTokensAreCountedByAddress) {
  std::string auth;
  TestServer server([&](ServerOptions& options) {
    auth = options.listen.substr(5) + ".auth";
    std::ofstream(auth) << AuthLine("looker", "reader");
    options.auth_file = auth;
    options.max_failed_logins_per_minute_per_address = 1;
  });
  WebPage page(server.env(), "1", {});
  const auto listener = StartHttpListener(
      "127.0.0.1:0", 2, [&](const HttpRequest& request) { return page.Answer(request); });
  ASSERT_TRUE(listener.ok()) << listener.status();
  const auto ask = [&](const std::string& token) {
    return Fetch((*listener)->port(),
                 Cat("GET /api/jobs HTTP/1.1\r\nAuthorization: Bearer ", token, "\r\n\r\n"));
  };
  EXPECT_EQ(ask("x").rfind("HTTP/1.1 401", 0), 0u);
  EXPECT_EQ(ask("TOKEN-looker").rfind("HTTP/1.1 429", 0), 0u);
}

TEST(Web, StrangersNamesForThisMachineAreRefused) {
  TestServer server;
  WebPage page(server.env(), "1", {});
  for (const char* host : {"evil.example", "127.evil.example:8472", "localhost.evil.example",
                           "1.2.3.4x", "evil.example."}) {
    EXPECT_EQ(Get(page, "/api/jobs", Cat("Host: ", host, "\r\n")).code, 403) << host;
  }
  for (const char* host :
       {"localhost:8472", "localhost", "127.0.0.1:8472", "10.0.0.1", "[::1]:8472", "[::1]"}) {
    EXPECT_EQ(Get(page, "/api/jobs", Cat("Host: ", host, "\r\n")).code, 200) << host;
  }
}

TEST(Web, JobsInPagesAndEventsInSteps) {
  TestServer server;
  WebPage page(server.env(), "1", {});
  const std::string model = server.MakeModel("model");
  std::set<std::string> left;
  for (int i = 0; i < 5; ++i) left.insert(server.SubmitSearch(model));
  server.WorkOnce(300);
  for (std::string token; !left.empty();) {
    const json list = JsonOf(Get(page, Cat("/api/jobs?page_size=2&page_token=", token)));
    for (const json& job : list["jobs"]) EXPECT_EQ(left.erase(job["name"].get<std::string>()), 1u);
    token = list.value("next_page_token", "");
    if (token.empty()) break;
  }
  EXPECT_TRUE(left.empty());
  EXPECT_EQ(JsonOf(Get(page, "/api/jobs?state=JOB_STATE_PENDING"))["jobs"].size(), 4u);
  const json list = JsonOf(Get(page, "/api/jobs?state=JOB_STATE_SUCCEEDED"));
  const json done = list["jobs"];
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(list["files"][model], "model.onnx");
  EXPECT_TRUE(list["speedups"].contains(done[0]["plan"].get<std::string>())) << list;
  const json none = JsonOf(Get(page, "/api/jobs?state=JOB_STATE_FAILED"));
  EXPECT_EQ(none["files"], json::object());
  const std::string name = done[0]["name"];
  int64_t after = 0, events = 0;
  for (json answer;; events += static_cast<int64_t>(answer["events"].size())) {
    answer = JsonOf(Get(page, Cat("/api/", name, "?after=", after)));
    EXPECT_EQ(answer["files"][model], "model.onnx");
    if (answer["events"].empty()) break;
    EXPECT_GT(std::stoll(answer["events"][0]["sequence"].get<std::string>()), after);
    after = std::stoll(answer["events"].back()["sequence"].get<std::string>());
  }
  EXPECT_EQ(events, 303) << "pending, running, 300 of progress, succeeded";
  const json result = JsonOf(Get(page, Cat("/api/", name, "/result")));
  EXPECT_TRUE(result["details"].is_null()) << "the test's plan is no plan file";
}

TEST(Web, ResultsOfPlansWithHostileNames) {
  TestServer server;
  WebPage page(server.env(), "1", {});
  const std::string job = server.SubmitSearch(server.MakeModel("model"));
  const std::string bytes = PlanBytes(server.folder());
  Finish(server.env(), PlanOutcome(server.env(), bytes));
  const json result = JsonOf(Get(page, Cat("/api/", job, "/result")));
  EXPECT_EQ(result["plan"]["speedup"], 1.5);
  const json& mutant = result["details"]["mutants"][0];
  EXPECT_EQ(mutant["where"][0], kHostile);
  EXPECT_EQ(mutant["where"][1], "\uFFFD\uFFFD");
  EXPECT_EQ(mutant["mended"][0]["boxes"], json::parse(R"([{"begin":[0,7],"end":[8,8]}])"));
  EXPECT_EQ(mutant["mended"][0]["shape"], json::parse("[8, 8]"));
  EXPECT_EQ(result["details"]["certificate"]["primes"][0], "9223372036854775808");
  const HttpResponse log = Get(page, Cat("/api/", job, "/log"));
  EXPECT_NE(HttpHead(log).find("Content-Disposition: attachment; filename=\"mendel-"),
            std::string::npos);
  EXPECT_EQ(log.type, "text/plain; charset=utf-8");
  EXPECT_NE(log.body.find(Cat("warning   ", kHostile, "??[31m\n")), std::string::npos) << log.body;
  const HttpResponse plan = Get(page, Cat("/api/", job, "/plan"));
  ASSERT_NE(plan.stream, nullptr);
  EXPECT_EQ(plan.type, "application/octet-stream");
  EXPECT_EQ(server.env().transfers.taken(), 1);
  std::string got(bytes.size() + 1, '\0');
  EXPECT_EQ(plan.stream->Read(0, got.data(), static_cast<int64_t>(got.size())).value_or(-1),
            static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(got.substr(0, bytes.size()), bytes);
}

TEST(Web, ResultsOfTheVerifierAndFailures) {
  TestServer server;
  WebPage page(server.env(), "1", {});
  const std::string model = server.MakeModel("model");
  const std::string verified = server.SubmitSearch(model);
  Outcome outcome;
  outcome.state = v1::JOB_STATE_SUCCEEDED;
  outcome.verdict.emplace();
  outcome.verdict->set_kind(v1::Verdict::KIND_PARTIAL);
  outcome.verdict->set_json("{\"a\": 1}");
  outcome.verdict->add_outputs()->set_name(kHostile);
  outcome.verdict->mutable_outputs(0)->add_boxes()->add_begin(3);
  Finish(server.env(), outcome);
  const json result = JsonOf(Get(page, Cat("/api/", verified, "/result")));
  EXPECT_EQ(result["verdict"]["outputs"][0]["name"], kHostile);
  EXPECT_EQ(result["verdict"]["outputs"][0]["boxes"][0]["begin"][0], "3");
  EXPECT_TRUE(result["report"]);
  EXPECT_FALSE(result["verdict"].contains("json"));
  EXPECT_FALSE(JsonOf(Get(page, Cat("/api/", verified)))["job"].contains("verdict"))
      << "polled again and again";
  EXPECT_EQ(Get(page, Cat("/api/", verified, "/report")).body, "{\"a\": 1}");

  const std::string failed = server.SubmitSearch(model);
  outcome = {};
  outcome.error.set_code(13);
  outcome.error.set_message(Cat(kHostile, " in /var/lib/secret/file"));
  outcome.bundle = BlobName(Store(server.env(), "the bundle"));
  Finish(server.env(), outcome);
  const json job = JsonOf(Get(page, Cat("/api/", failed)))["job"];
  EXPECT_EQ(job["error"]["message"].get<std::string>().find("/var/lib"), std::string::npos);
  EXPECT_NE(Get(page, Cat("/api/", failed, "/bundle")).stream, nullptr);
  EXPECT_TRUE(JsonOf(Get(page, Cat("/api/", failed, "/result")))["plan"].is_null());
}

constexpr int64_t kSize = 3'000'001;

/// A body whose bytes report where they stand.
class LongBody final : public HttpBody {
 public:
  explicit LongBody(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  absl::StatusOr<int64_t> Read(int64_t offset, char* buffer, int64_t capacity) override {
    const int64_t count = std::min(capacity, size_ - offset);
    for (int64_t i = 0; i < count; ++i) buffer[i] = static_cast<char>('a' + (offset + i) % 23);
    return count;
  }

 private:
  const int64_t size_;
};

TEST(Web, StreamsArriveWhole) {
  const auto listener = StartHttpListener("127.0.0.1:0", 2, [](const HttpRequest&) {
    HttpResponse response;
    response.stream = std::make_shared<LongBody>(kSize);
    return response;
  });
  ASSERT_TRUE(listener.ok()) << listener.status();
  const std::string answer = Fetch((*listener)->port(), "GET / HTTP/1.1\r\n\r\n");
  const std::string body = answer.substr(answer.find("\r\n\r\n") + 4);
  std::string expected(kSize, '\0');
  EXPECT_EQ(LongBody(kSize).Read(0, expected.data(), kSize).value_or(0), kSize);
  EXPECT_TRUE(body == expected) << body.size();
  EXPECT_NE(answer.find(Cat("\r\nContent-Length: ", kSize, "\r\n")), std::string::npos);
  const std::string head = Fetch((*listener)->port(), "HEAD / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(head.find("\r\n\r\n") + 4, head.size());
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "get"}) {
    const std::string refused = Fetch((*listener)->port(), Cat(method, " / HTTP/1.1\r\n\r\n"));
    EXPECT_NE(refused.find("405 Method Not Allowed"), std::string::npos) << method;
    EXPECT_NE(refused.find("\r\nAllow: GET, HEAD\r\n"), std::string::npos) << method;
  }
}

TEST(Web, WhereThePageIs) {
  ServerOptions options;
  EXPECT_EQ(PageAddressOf(options).address, "127.0.0.1:8472");
  EXPECT_FALSE(PageAddressOf(options).must);
  options.listen = "unix:/socket";
  EXPECT_EQ(PageAddressOf(options).address, "") << "a socket's owner chose who gets in";
  options.listen = "127.0.0.1:1,0.0.0.0:1";
  EXPECT_EQ(PageAddressOf(options).address, "");
  options.http_port = "9000";
  options.http_address = "::1";
  EXPECT_EQ(PageAddressOf(options).address, "[::1]:9000");
  EXPECT_TRUE(PageAddressOf(options).must);
  options = {};
  options.http_port = "none";
  EXPECT_EQ(PageAddressOf(options).address, "");
  options = {};
  for (const char* bad : {"", "65536", "-1", "80x", "999999"}) {
    options.http_port = bad;
    EXPECT_TRUE(absl::IsInvalidArgument(CheckOptions(options))) << bad;
  }
  options.http_port = "80";
  options.http_address = "0.0.0.0";
  EXPECT_FALSE(CheckOptions(options).ok());
  options.insecure_bind = true;
  EXPECT_FALSE(CheckOptions(options).ok()) << "everybody";
  options.anonymous_role = "none";
  EXPECT_TRUE(CheckOptions(options).ok());
}

}  // namespace
}  // namespace mendel::server
