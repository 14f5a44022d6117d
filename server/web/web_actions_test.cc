// Jobs are cancelled and run again, by those who may and from the page alone; models, plans,
// filters, and files that are made of plans.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/status.h"
#include "server/rpc/test_server.h"
#include "server/web/web_page.h"

namespace mendel::server {
namespace {

using nlohmann::json;

constexpr char kOwnPage[] = "Host: localhost\r\nX-Mendel-Page: 1\r\n";

HttpResponse Send(WebPage& page, const std::string& line, const std::string& headers) {
  const auto request = ParseHttpRequest(Cat(line, " HTTP/1.1\r\n", headers, "\r\n"));
  EXPECT_TRUE(request.ok()) << request.status();
  return page.Answer(*request);
}

HttpResponse PostTo(WebPage& page, const std::string& target, const std::string& headers) {
  return Send(page, "POST " + target, headers);
}

HttpResponse GetFrom(WebPage& page, const std::string& target,
                     const std::string& headers = "Host: localhost\r\n") {
  return Send(page, "GET " + target, headers);
}

json JsonIn(const HttpResponse& response) {
  EXPECT_EQ(response.code, 200) << response.body;
  return json::parse(response.body, nullptr, false);
}

TEST(WebActions, CancelsAndRunsAgain) {
  TestServer server;
  WebPage page(server.env(), "1", {});
  const std::string model = server.MakeModel("model");
  const std::string waiting = server.SubmitSearch(model);
  const auto state = [&](const std::string& job) {
    return JsonIn(GetFrom(page, "/api/" + job))["job"]["state"].get<std::string>();
  };
  EXPECT_EQ(PostTo(page, Cat("/api/", waiting, "/again"), kOwnPage).code, 409)
      << "it has not ended";
  EXPECT_EQ(JsonIn(PostTo(page, Cat("/api/", waiting, "/cancel"), kOwnPage))["job"], waiting);
  EXPECT_EQ(state(waiting), "JOB_STATE_CANCELLED");
  const std::string again =
      JsonIn(PostTo(page, Cat("/api/", waiting, "/again"), kOwnPage))["job"].get<std::string>();
  EXPECT_NE(again, waiting);
  EXPECT_EQ(state(again), "JOB_STATE_PENDING");
  server.WorkOnce(1);
  EXPECT_EQ(state(again), "JOB_STATE_SUCCEEDED");
  const std::string next =
      JsonIn(PostTo(page, Cat("/api/", again, "/again"), kOwnPage))["job"].get<std::string>();
  const auto seed = [&](const std::string& job) {
    return JsonIn(GetFrom(page, "/api/" + job))["job"]["spec"]["optimize"].value("seed", "0");
  };
  EXPECT_EQ(std::stoll(seed(next)), std::stoll(seed(again)) + 1) << "a plan answers the old seed";
  for (const char* target :
       {"/", "/api/session", "/api/jobs", "/api/models", "/api/jobs/x/cancel/y", "/app.js"})
    EXPECT_GE(PostTo(page, target, kOwnPage).code, 400) << target;
  for (const char* what : {"", "/result", "/plan", "/delete"})
    EXPECT_EQ(PostTo(page, Cat("/api/", next, what), kOwnPage).code, 404) << what;
  EXPECT_EQ(GetFrom(page, Cat("/api/", next, "/cancel")).code, 404) << "GET changes nothing";
  EXPECT_EQ(state(next), "JOB_STATE_PENDING");
}

TEST(WebActions, OtherSitesChangeNothing) {
  TestServer server;
  WebPage page(server.env(), "1", {});
  const std::string job = server.SubmitSearch(server.MakeModel("model"));
  const std::string cancel = Cat("/api/", job, "/cancel");
  for (const std::string headers :
       {"Host: localhost:8472\r\n",
        "Host: localhost:8472\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n",
        "Host: localhost:8472\r\nX-Mendel-Page: 1\r\nOrigin: https://evil.example\r\n",
        "Host: localhost:8472\r\nX-Mendel-Page: 1\r\nOrigin: null\r\n",
        "Host: localhost:8472\r\nX-Mendel-Page: 1\r\nOrigin: http://localhost\r\n",
        "Host: localhost:8472\r\nX-Mendel-Page: 1\r\nSec-Fetch-Site: cross-site\r\n",
        "Host: localhost:8472\r\nX-Mendel-Page: 1\r\nSec-Fetch-Site: same-site\r\n",
        "Host: evil.example\r\nX-Mendel-Page: 1\r\nOrigin: http://evil.example\r\n"})
    EXPECT_EQ(PostTo(page, cancel, headers).code, 403) << headers;
  EXPECT_EQ(JsonIn(GetFrom(page, "/api/" + job))["job"]["state"], "JOB_STATE_PENDING");
  EXPECT_EQ(PostTo(page, cancel,
                   "Host: localhost:8472\r\nX-Mendel-Page: 1\r\nOrigin: http://localhost:8472\r\n"
                   "Sec-Fetch-Site: same-origin\r\n")
                .code,
            200);
  for (const char* body : {"Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n"})
    EXPECT_FALSE(
        ParseHttpRequest(Cat("POST ", cancel, " HTTP/1.1\r\n", kOwnPage, body, "\r\n")).ok())
        << body;
}

TEST(WebActions, ActionsNeedTheirRoles) {
  TestServer server([&](ServerOptions& options) {
    options.auth_file = options.listen.substr(5) + ".auth";
    std::ofstream(options.auth_file) << AuthLine("looker", "reader") << AuthLine("ann", "submitter")
                                     << AuthLine("root", "admin") << AuthLine("other", "a:admin");
  });
  WebPage page(server.env(), "1", {});
  const std::string job = server.SubmitSearch(server.MakeModel("model"));
  const auto post = [&](const std::string& what, const std::string& name) {
    return PostTo(
               page, Cat("/api/", job, what),
               Cat(kOwnPage, name.empty() ? "" : Cat("Authorization: Bearer TOKEN-", name, "\r\n")))
        .code;
  };
  EXPECT_EQ(post("/cancel", ""), 401);
  EXPECT_EQ(post("/cancel", "nobody"), 401);
  for (const char* name : {"looker", "other", "ann"})
    EXPECT_EQ(post("/cancel", name), 403) << name << " is no owner";
  EXPECT_EQ(post("/cancel", "root"), 200);
  for (const char* name : {"looker", "other"}) EXPECT_EQ(post("/again", name), 403) << name;
  EXPECT_EQ(post("/again", "ann"), 200);
  const json jobs = JsonIn(GetFrom(
      page, "/api/jobs", "Host: localhost\r\nAuthorization: Bearer TOKEN-looker\r\n"))["jobs"];
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0]["client"], "ann") << "the new job is of the one who started it";
}

TEST(WebActions, ModelsPlansAndFilters) {
  TestServer server;
  WebPage page(server.env(), "1", {});
  const std::string model = server.MakeModel("model");
  const std::string job = server.SubmitSearch(model);
  const std::string plan = server.WorkOnce(1);
  server.SubmitSearch(server.MakeModel("another"));
  EXPECT_EQ(JsonIn(GetFrom(page, "/api/models"))["models"].size(), 2u);
  const json models = JsonIn(GetFrom(page, "/api/models?filter=size_bytes+%3D+5"))["models"];
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0]["name"], model);
  const json plans = JsonIn(GetFrom(page, "/api/plans?page_size=1"));
  EXPECT_EQ(plans["plans"][0]["name"], plan);
  EXPECT_EQ(plans["files"][model], "model.onnx");
  EXPECT_EQ(JsonIn(GetFrom(page, Cat("/api/jobs?filter=model%20%3D%20", model)))["jobs"].size(),
            1u);
  const HttpResponse bad = GetFrom(page, "/api/jobs?filter=color%3Dred");
  EXPECT_EQ(bad.code, 400);
  EXPECT_NE(bad.body.find("create_time"), std::string::npos) << "the fields are named";
  const json one = JsonIn(GetFrom(page, "/api/" + plan));
  EXPECT_EQ(one["plan"]["job"], job);
  EXPECT_TRUE(one["details"].is_null()) << "the test's plan is no plan file";
  EXPECT_NE(GetFrom(page, Cat("/api/", plan, "/plan")).stream, nullptr);
  EXPECT_EQ(GetFrom(page, Cat("/api/", plan, "/else")).code, 404);
  EXPECT_EQ(GetFrom(page, "/api/plans/x").code, 400);
}

/// The executable is no `mendel`.
TEST(WebActions, AFileThatCannotBeMadeSaysSo) {
  TestServer server(
      [](ServerOptions& options) { options.max_rpcs_per_second_per_client = 1'000'000; });
  RunnerOptions runner;
  runner.executable = "/bin/false";
  runner.work_folder = server.folder() + "/page-work";
  WebPage page(server.env(), "1", runner);
  server.SubmitSearch(server.MakeModel("model"));
  const std::string target = Cat("/api/", server.WorkOnce(1), "/onnx");
  EXPECT_EQ(GetFrom(page, target).code, 202) << "it is made by another thread";
  HttpResponse response;
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    response = GetFrom(page, target);
  } while (response.code == 202);
  EXPECT_EQ(response.code, 409) << response.body;
  EXPECT_EQ(response.body.find(server.folder()), std::string::npos) << response.body;
  EXPECT_EQ(GetFrom(page, target).code, 202) << "the next request tries again";
}

}  // namespace
}  // namespace mendel::server
