// Spans: their format, and how calls, queue, attempts and phases hang together.
#include "server/tracer.h"

#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/status.h"
#include "google/longrunning/operations.pb.h"
#include "mendel/v1/jobs.grpc.pb.h"
#include "server/grpc_log.h"
#include "server/observed_store.h"
#include "server/rpc/test_server.h"
#include "server/trace_parent.h"

namespace mendel::server {
namespace {

using nlohmann::json;

constexpr char kParent[] = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
constexpr char kUnsampled[] = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-00";

/// The spans of a file, in order. Every line is a whole request of OTLP.
std::vector<json> SpansOf(const std::string& path) {
  std::vector<json> spans;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const json request = json::parse(line, nullptr, false);
    EXPECT_EQ(request["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"],
              "mendeld")
        << line;
    for (const json& span : request["resourceSpans"][0]["scopeSpans"][0]["spans"])
      spans.push_back(span);
  }
  return spans;
}

TEST(Tracer, ASpanAsOtlpWritesIt) {
  Span span{"a \"name\"", kParent, kUnsampled, true, 1'700'000'000'000'001, 1'700'000'000'500'000};
  span.attributes = {{"text", std::string("\xff")}, {"number", int64_t{7}}, {"share", 0.5}};
  span.error = "NOT_FOUND";
  const json made =
      json::parse(SpanLine(span, "1.2"))["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
  EXPECT_EQ(made["traceId"], "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(made["spanId"], "0123456789abcdef");
  EXPECT_EQ(made["parentSpanId"], "0123456789abcdef");
  EXPECT_EQ(made["kind"], 2);
  EXPECT_EQ(made["startTimeUnixNano"], "1700000000000001000");
  EXPECT_EQ(made["endTimeUnixNano"], "1700000000500000000");
  EXPECT_EQ(made["attributes"][0]["value"]["stringValue"], "\uFFFD");
  EXPECT_EQ(made["attributes"][1]["value"]["intValue"], "7");
  EXPECT_EQ(made["attributes"][2]["value"]["doubleValue"], 0.5);
  EXPECT_EQ(made["status"]["code"], 2);
}

TEST(Tracer, RecordsWhatIsSampled) {
  TestServer server;
  const std::string path = server.folder() + "/spans";
  Logger log(LogLevel::kInfo, SystemClock(), [](const std::string&) {});
  auto off = Tracer::Open("", "1", log);
  ASSERT_TRUE(off.ok());
  EXPECT_EQ((*off)->Begin(kParent), kParent) << "nothing is added";
  EXPECT_EQ((*off)->Begin(""), "");
  EXPECT_FALSE(Tracer::Open(server.folder() + "/none/spans", "1", log).ok());
  auto on = Tracer::Open(path, "1", log);
  ASSERT_TRUE(on.ok()) << on.status();
  EXPECT_EQ((*on)->Begin(kUnsampled), kUnsampled);
  (*on)->Record({"not sampled", kUnsampled, kUnsampled});
  const std::string below = (*on)->Begin(kParent), fresh = (*on)->Begin("");
  EXPECT_EQ(ValidTraceParent(below), below);
  EXPECT_EQ(ValidTraceParent(fresh), fresh);
  EXPECT_EQ(TraceIdOf(below), TraceIdOf(kParent));
  EXPECT_NE(SpanIdOf(below), SpanIdOf(kParent));
  (*on)->Record({"first", below, kParent});
  std::filesystem::rename(path, path + ".1");
  (*on)->Reopen();
  (*on)->Record({"second", fresh, ""});
  ASSERT_EQ(SpansOf(path + ".1").size(), 1u);
  ASSERT_EQ(SpansOf(path).size(), 1u);
  EXPECT_FALSE(SpansOf(path)[0].contains("parentSpanId"));
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(Tracer, CallsQueueAttemptsAndPhasesAreOneTrace) {
  std::string path;
  TestServer server([&](ServerOptions& options) {
    path = options.listen.substr(5) + ".spans";
    options.trace_file = path;
  });
  v1::SubmitJobRequest submit;
  submit.mutable_spec()->mutable_optimize()->set_model(server.MakeModel("m"));
  v1::Jobs::Stub stub(server.channel());
  grpc::ClientContext context;
  Prepare(context);
  context.AddMetadata("traceparent", kParent);
  google::longrunning::Operation operation;
  ASSERT_TRUE(stub.SubmitJob(&context, submit, &operation).ok());
  grpc::ClientContext watch_context;
  Prepare(watch_context);
  watch_context.AddMetadata("traceparent", kParent);
  watch_context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));

  auto sqlite = OpenSqliteStore(server.folder() + "/mendel.sqlite", SystemClock());
  ASSERT_TRUE(sqlite.ok()) << sqlite.status();
  Logger log(LogLevel::kInfo, SystemClock(), [](const std::string&) {});
  Metrics metrics;
  const auto jobs =
      ObserveStore(*std::move(sqlite), SystemClock(), {metrics, log, server.env().tracer});
  const auto claimed = jobs->Claim("worker", SystemClock().WallMicros() + 60'000'000, {{"cpu"}});
  ASSERT_TRUE(claimed.ok() && claimed->has_value()) << claimed.status();
  const std::string job = (*claimed)->job.name();
  for (const char* phase : {"import", "search", "search", "certify"}) {
    v1::JobEvent event;
    event.mutable_progress()->set_phase(phase);
    ASSERT_TRUE(jobs->AppendEvent(job, (*claimed)->fence, event).ok());
  }
  Outcome outcome;
  outcome.state = v1::JOB_STATE_CANCELLED;
  ASSERT_TRUE(jobs->Finish(job, (*claimed)->fence, outcome).ok());
  v1::WatchJobRequest watch;
  watch.set_name(job);
  auto reader = stub.WatchJob(&watch_context, watch);
  for (v1::JobEvent event; reader->Read(&event);) {
  }
  ASSERT_TRUE(reader->Finish().ok());

  std::map<std::string, json> spans;
  for (const json& span : SpansOf(path)) {
    EXPECT_EQ(span["traceId"], TraceIdOf(kParent)) << span;
    EXPECT_LE(std::stoll(span["startTimeUnixNano"].get<std::string>()),
              std::stoll(span["endTimeUnixNano"].get<std::string>()))
        << span;
    EXPECT_TRUE(spans.emplace(span["name"].get<std::string>(), span).second) << span;
  }
  const json call = spans["mendel.v1.Jobs/SubmitJob"], attempt = spans["job"];
  EXPECT_EQ(call["parentSpanId"], SpanIdOf(kParent));
  EXPECT_EQ(spans["mendel.v1.Jobs/WatchJob"]["parentSpanId"], SpanIdOf(kParent));
  EXPECT_EQ(spans["queue"]["parentSpanId"], call["spanId"]);
  EXPECT_EQ(attempt["parentSpanId"], call["spanId"]);
  EXPECT_EQ(SpanIdOf((*claimed)->trace_parent), attempt["spanId"]) << "what the worker gets";
  for (const char* phase : {"import", "search", "certify"})
    EXPECT_EQ(spans[phase]["parentSpanId"], attempt["spanId"]) << phase;
  EXPECT_EQ(spans.size(), 7u);
}

TEST(GrpcLogTest, LinesOfGrpcAreLinesOfTheLog) {
  std::string text;
  Logger logger(LogLevel::kDebug, SystemClock(), [&](const std::string& line) { text += line; });
  {
    const GrpcLog installed(logger);
    gpr_log("src/core/file.cc", 12, GPR_LOG_SEVERITY_ERROR, "odd \"%s\"", "thing");
  }
  const json line = json::parse(text, nullptr, false);
  EXPECT_EQ(line["level"], "error");
  EXPECT_EQ(line["event"], "grpc");
  EXPECT_EQ(line["message"], "odd \"thing\"");
  EXPECT_EQ(line["place"], "file.cc:12");
}

}  // namespace
}  // namespace mendel::server
