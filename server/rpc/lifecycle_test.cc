// A job from upload to download, as clients see it.
#include <gtest/gtest.h>

#include <thread>

#include "base/hash.h"
#include "base/status.h"
#include "google/bytestream/bytestream.grpc.pb.h"
#include "google/longrunning/operations.grpc.pb.h"
#include "google/rpc/status.pb.h"
#include "mendel/v1/jobs.grpc.pb.h"
#include "mendel/v1/models.grpc.pb.h"
#include "mendel/v1/plans.grpc.pb.h"
#include "server/rpc/test_server.h"
#include "server/trace_parent.h"

namespace mendel::server {
namespace {

using google::bytestream::ByteStream;
using google::longrunning::Operation;
using google::longrunning::Operations;

constexpr char kUuid[] = "76543210-89ab-cdef-0123-456789abcdef";

std::string UploadName(const std::string& bytes) {
  return Cat("uploads/", kUuid, "/blobs/", Sha256Hex(std::string_view(bytes)), "/", bytes.size());
}

/// Sends bytes [begin, end) in one stream; `finish` ends the upload. The committed size, or the
/// error.
std::pair<grpc::Status, int64_t> Send(ByteStream::Stub& stub, const std::string& bytes,
                                      size_t begin, size_t end, bool finish) {
  grpc::ClientContext context;
  Prepare(context);
  google::bytestream::WriteResponse response;
  auto stream = stub.Write(&context, &response);
  google::bytestream::WriteRequest request;
  request.set_resource_name(UploadName(bytes));
  constexpr size_t kChunk = 1 << 20;
  for (size_t at = begin; at < end; at += kChunk) {
    request.set_write_offset(static_cast<int64_t>(at));
    request.set_data(bytes.substr(at, std::min(kChunk, end - at)));
    request.set_finish_write(finish && at + kChunk >= end);
    if (!stream->Write(request)) break;
  }
  stream->WritesDone();
  const grpc::Status status = stream->Finish();
  return {status, response.committed_size()};
}

std::string Receive(ByteStream::Stub& stub, const std::string& name, int64_t offset,
                    int64_t limit) {
  grpc::ClientContext context;
  Prepare(context);
  google::bytestream::ReadRequest request;
  request.set_resource_name(name);
  request.set_read_offset(offset);
  request.set_read_limit(limit);
  auto stream = stub.Read(&context, request);
  google::bytestream::ReadResponse chunk;
  std::string bytes;
  while (stream->Read(&chunk)) bytes += chunk.data();
  const grpc::Status status = stream->Finish();
  return status.ok() ? bytes : Cat("error ", static_cast<int>(status.error_code()));
}

std::string RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  uint32_t state = 1;
  for (char& c : bytes) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

TEST(Lifecycle, UploadResumesAndDownloads) {
  for (bool over_socket : {false, true}) {
    TestServer server;
    ByteStream::Stub stub(server.channel(over_socket));
    const std::string bytes = RandomBytes((5 << 20) + 123);
    const size_t half = 2 << 20;
    const auto [first, committed] = Send(stub, bytes, 0, half, false);
    ASSERT_TRUE(first.ok()) << first.error_message();
    EXPECT_EQ(committed, static_cast<int64_t>(half));
    EXPECT_EQ(Send(stub, bytes, half + 1, bytes.size(), true).first.error_code(),
              grpc::OUT_OF_RANGE);
    grpc::ClientContext context;
    Prepare(context);
    google::bytestream::QueryWriteStatusRequest query;
    query.set_resource_name(UploadName(bytes));
    google::bytestream::QueryWriteStatusResponse status;
    ASSERT_TRUE(stub.QueryWriteStatus(&context, query, &status).ok());
    EXPECT_EQ(status.committed_size(), static_cast<int64_t>(half));
    EXPECT_FALSE(status.complete());
    const auto [second, all] = Send(stub, bytes, half, bytes.size(), true);
    ASSERT_TRUE(second.ok()) << second.error_message();
    EXPECT_EQ(all, static_cast<int64_t>(bytes.size()));
    // Again: the file is there, nothing is read. (gRPC's in-process transport lets a client write
    // on until its deadline.)
    if (over_socket) {
      EXPECT_EQ(Send(stub, bytes, 0, bytes.size(), true).second,
                static_cast<int64_t>(bytes.size()));
    }
    const std::string name = Cat("blobs/", Sha256Hex(std::string_view(bytes)), "/", bytes.size());
    EXPECT_TRUE(Receive(stub, name, 0, 0) == bytes);
    EXPECT_TRUE(Receive(stub, name, 4 << 20, 1000) == bytes.substr(4 << 20, 1000));
    EXPECT_EQ(Receive(stub, name, static_cast<int64_t>(bytes.size()), 0), "");
    EXPECT_EQ(Receive(stub, name, static_cast<int64_t>(bytes.size()) + 1, 0),
              Cat("error ", static_cast<int>(grpc::OUT_OF_RANGE)));
  }
}

TEST(Lifecycle, WrongBytesAreNotTaken) {
  TestServer server;
  ByteStream::Stub stub(server.channel());
  google::bytestream::WriteRequest request;
  request.set_resource_name(UploadName("right"));
  request.set_data("wrong");
  request.set_finish_write(true);
  grpc::ClientContext context;
  Prepare(context);
  google::bytestream::WriteResponse response;
  auto stream = stub.Write(&context, &response);
  stream->Write(request);
  stream->WritesDone();
  EXPECT_EQ(stream->Finish().error_code(), grpc::DATA_LOSS);
  EXPECT_EQ(Receive(stub, Cat("blobs/", Sha256Hex(std::string_view("right")), "/5"), 0, 0),
            Cat("error ", static_cast<int>(grpc::NOT_FOUND)));
}

TEST(Lifecycle, UploadsBeyondTheQuotaAreRefused) {
  TestServer server([](ServerOptions& options) { options.max_stored_bytes_per_client = 100; });
  ByteStream::Stub stub(server.channel());
  const auto send = [&](const std::string& bytes) {
    return Send(stub, bytes, 0, bytes.size(), true).first;
  };
  EXPECT_TRUE(send(std::string(60, 'a')).ok());
  const grpc::Status full = send(std::string(41, 'b'));
  EXPECT_EQ(full.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_NE(full.error_details().find("CLIENT_QUOTA"), std::string::npos);
  EXPECT_NE(full.error_message().find("have 60 bytes, and 41 more"), std::string::npos)
      << full.error_message();
  // Wrong bytes are not kept, and do not count.
  google::bytestream::WriteRequest request;
  request.set_resource_name(UploadName(std::string(40, 'c')));
  request.set_data(std::string(40, 'd'));
  request.set_finish_write(true);
  grpc::ClientContext context;
  Prepare(context);
  google::bytestream::WriteResponse response;
  auto stream = stub.Write(&context, &response);
  stream->Write(request);
  stream->WritesDone();
  EXPECT_EQ(stream->Finish().error_code(), grpc::DATA_LOSS);
  EXPECT_TRUE(send(std::string(40, 'e')).ok());
  EXPECT_EQ(send("f").error_code(), grpc::RESOURCE_EXHAUSTED);
}

TEST(Lifecycle, JobFromSubmissionToPlan) {
  TestServer server;
  const std::string model = server.MakeModel("the model");
  v1::Jobs::Stub jobs(server.channel());
  v1::SubmitJobRequest submit;
  submit.mutable_spec()->mutable_optimize()->set_model(model);
  submit.set_request_id("my-request");
  std::string name;
  for (int attempt = 0; attempt < 2; ++attempt) {
    grpc::ClientContext context;
    Prepare(context);
    Operation operation;
    const grpc::Status status = jobs.SubmitJob(&context, submit, &operation);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_FALSE(operation.done());
    if (attempt == 1) {
      EXPECT_EQ(operation.name(), name);
    }
    name = operation.name();
  }
  submit.mutable_spec()->mutable_optimize()->set_seed(5);
  grpc::ClientContext other;
  Prepare(other);
  Operation ignored;
  EXPECT_EQ(jobs.SubmitJob(&other, submit, &ignored).error_code(), grpc::ALREADY_EXISTS);

  std::string plan;
  std::thread worker([&] { plan = server.WorkOnce(5); });
  grpc::ClientContext watch;
  Prepare(watch);
  v1::WatchJobRequest request;
  request.set_name(name);
  auto stream = jobs.WatchJob(&watch, request);
  v1::JobEvent event;
  std::vector<v1::JobEvent> events;
  while (stream->Read(&event)) events.push_back(event);
  EXPECT_TRUE(stream->Finish().ok());
  worker.join();
  ASSERT_GE(events.size(), 3u);
  for (size_t i = 0; i < events.size(); ++i)
    EXPECT_EQ(events[i].sequence(), static_cast<int64_t>(i) + 1);
  EXPECT_EQ(events.front().state(), v1::JOB_STATE_PENDING);
  EXPECT_EQ(events.back().state(), v1::JOB_STATE_SUCCEEDED);
  // Resumed from the middle: the rest and no more.
  grpc::ClientContext again;
  Prepare(again);
  request.set_after_sequence(events[events.size() - 3].sequence());
  stream = jobs.WatchJob(&again, request);
  int rest = 0;
  while (stream->Read(&event)) ++rest;
  EXPECT_EQ(rest, 2);

  Operations::Stub operations(server.channel());
  grpc::ClientContext wait;
  Prepare(wait);
  google::longrunning::WaitOperationRequest wait_request;
  wait_request.set_name(name);
  Operation done;
  ASSERT_TRUE(operations.WaitOperation(&wait, wait_request, &done).ok());
  v1::Plan answer;
  ASSERT_TRUE(done.done() && done.response().UnpackTo(&answer));
  EXPECT_EQ(answer.name(), plan);
  EXPECT_EQ(Receive(*ByteStream::NewStub(server.channel()), answer.blob(), 0, 0),
            "plan of " + name);
}

TEST(Lifecycle, StoredPlanAnswersTheSameSearch) {
  TestServer server;
  v1::SubmitJobRequest submit;
  submit.mutable_spec()->mutable_optimize()->set_model(server.MakeModel("m"));
  v1::Jobs::Stub jobs(server.channel());
  Operation operation;
  grpc::ClientContext first;
  Prepare(first);
  ASSERT_TRUE(jobs.SubmitJob(&first, submit, &operation).ok());
  const std::string job = operation.name();
  const std::string plan = server.WorkOnce(0);
  for (bool job_is_there : {true, false}) {
    grpc::ClientContext context;
    Prepare(context);
    ASSERT_TRUE(jobs.SubmitJob(&context, submit, &operation).ok());
    EXPECT_TRUE(operation.done());
    EXPECT_EQ(operation.name(), job_is_there ? job : plan);
    v1::Plan answer;
    ASSERT_TRUE(operation.response().UnpackTo(&answer));
    EXPECT_EQ(answer.name(), plan);
    grpc::ClientContext remove;
    Prepare(remove);
    v1::DeleteJobRequest request;
    request.set_name(job);
    google::protobuf::Empty empty;
    if (job_is_there) {
      EXPECT_TRUE(jobs.DeleteJob(&remove, request, &empty).ok());
    }
  }
  EXPECT_EQ(server.env().metrics.Value("mendel_plan_reuse_total", {}), 2);
}

TEST(Lifecycle, ARequestIdIsOneRequestWhateverAnswersIt) {
  TestServer server;
  v1::Jobs::Stub jobs(server.channel());
  v1::SubmitJobRequest submit;
  submit.mutable_spec()->mutable_optimize()->set_model(server.MakeModel("m"));
  const auto send = [&](const std::string& id,
                        uint64_t seed) -> std::pair<grpc::StatusCode, Operation> {
    submit.set_request_id(id);
    submit.mutable_spec()->mutable_optimize()->set_seed(seed);
    grpc::ClientContext context;
    Prepare(context);
    Operation operation;
    const grpc::StatusCode code = jobs.SubmitJob(&context, submit, &operation).error_code();
    return {code, operation};
  };
  const std::string found = send("one", 1).second.name();
  server.WorkOnce(0);  // seed 1 is answered by a stored plan from now on
  EXPECT_EQ(send("one", 1).second.name(), found);
  EXPECT_TRUE(send("one", 1).second.done());
  EXPECT_EQ(send("one", 2).first, grpc::ALREADY_EXISTS);
  EXPECT_EQ(send("two", 1).second.name(), found);
  EXPECT_EQ(send("two", 2).first, grpc::ALREADY_EXISTS)
      << "answered without a job of its own, and remembered all the same";
  EXPECT_EQ(send("two", 1).second.name(), found);
  const std::string waits = send("three", 2).second.name();
  EXPECT_EQ(send("three", 1).first, grpc::ALREADY_EXISTS)
      << "a stored plan is no reason to forget what was requested";
  EXPECT_EQ(send("three", 2).second.name(), waits);
}

TEST(Lifecycle, RebindsNeedADeviceThatSomeWorkerHas) {
  TestServer server([](ServerOptions& options) {
    options.runner.devices = {{"cpu", "a processor", "avx2"}, {"cuda:sm_90", "", "sm_90", true}};
    options.runner.other_devices = {"other"};
  });
  const std::string model = server.MakeModel("m");
  v1::Jobs::Stub jobs(server.channel());
  JobStore& store = server.env().jobs;
  int plans = 0;
  const auto rebind = [&](const std::string& device, const std::string& isa, bool unmeasured) {
    Outcome outcome;
    outcome.state = v1::JOB_STATE_SUCCEEDED;
    v1::Plan& plan = outcome.plan.emplace();
    plan.set_name("plans/" + Sha256Hex(Cat(++plans)));
    plan.set_weights("symbolic");
    plan.set_device(device);
    plan.set_isa(isa);
    plan.set_unmeasured(unmeasured);
    server.SubmitSearch(model);
    const auto job = store.Claim("worker", SystemClock().WallMicros() + 60'000'000, {});
    EXPECT_TRUE(job.ok() && job->has_value() &&
                store.Finish((*job)->job.name(), (*job)->fence, outcome).ok());
    v1::SubmitJobRequest submit;
    submit.mutable_spec()->mutable_refit_plan()->set_plan(plan.name());
    submit.mutable_spec()->mutable_refit_plan()->set_model(model);
    grpc::ClientContext context;
    Prepare(context);
    Operation operation;
    const grpc::Status status = jobs.SubmitJob(&context, submit, &operation);
    if (!status.ok()) return status.error_message();
    const std::string needed = store.GetJob(operation.name())->device;
    EXPECT_TRUE(store.CancelJob(operation.name()).ok());
    return needed;
  };
  EXPECT_EQ(rebind("cpu", "avx512", false), "cpu") << "which machine it was, its worker finds out";
  EXPECT_EQ(rebind("cuda", "sm_90", true), "cuda:sm_90");
  EXPECT_EQ(rebind("other", "", false), "other");
  for (const bool unmeasured : {false, true}) {
    const std::string description = rebind("cuda", "sm_80", unmeasured);
    EXPECT_NE(description.find(unmeasured ? "no worker has 'cuda:sm_80'" : "no worker has 'cuda'"),
              std::string::npos)
        << description;
  }
}

TEST(Lifecycle, TracesAreAcceptedWhereTheyAreWellFormed) {
  const std::string id = "0123456789abcdef0123456789abcdef";
  const std::string good = Cat("00-", id, "-0123456789abcdef-01");
  EXPECT_EQ(ValidTraceParent(good), good);
  EXPECT_EQ(TraceIdOf(good), id);
  for (const std::string& bad :
       {std::string(), Cat("01", good.substr(2)), good + "0", good.substr(1),
        Cat("00-", std::string(32, '0'), "-0123456789abcdef-01"),
        Cat("00-", id, "-", std::string(16, '0'), "-01"), Cat("00-", id, "-0123456789ABCDEF-01"),
        Cat("00-", id, "_0123456789abcdef-01")})
    EXPECT_EQ(ValidTraceParent(bad), "") << bad;
  TestServer server;
  v1::SubmitJobRequest submit;
  submit.mutable_spec()->mutable_optimize()->set_model(server.MakeModel("m"));
  v1::Jobs::Stub jobs(server.channel());
  grpc::ClientContext context;
  Prepare(context);
  context.AddMetadata("traceparent", good);
  Operation operation;
  ASSERT_TRUE(jobs.SubmitJob(&context, submit, &operation).ok());
  EXPECT_NE(server.log_text().find(Cat("\"trace\":\"", id, "\"")), std::string::npos)
      << server.log_text();
  EXPECT_EQ(server.env().jobs.GetJob(operation.name())->trace_parent, good);
}

TEST(Lifecycle, RulesAndShapesAreCheckedAtSubmit) {
  TestServer server([](ServerOptions& options) {
    options.runner.rules = {"conv_merge", "fold_bn"};
    options.runner.check_shapes = [](std::string_view shapes) {
      return shapes == "x:1" ? absl::OkStatus() : absl::InvalidArgumentError("no shape");
    };
  });
  const std::string model = server.MakeModel("m");
  v1::Jobs::Stub jobs(server.channel());
  const auto submit = [&](const std::string& rule, const std::string& shapes) {
    v1::SubmitJobRequest request;
    request.mutable_spec()->mutable_optimize()->set_model(model);
    request.mutable_spec()->mutable_optimize()->add_disabled_rules(rule);
    request.mutable_spec()->mutable_optimize()->set_shapes(shapes);
    grpc::ClientContext context;
    Prepare(context);
    Operation operation;
    return jobs.SubmitJob(&context, request, &operation);
  };
  EXPECT_TRUE(submit("conv_merge", "x:1").ok());
  EXPECT_EQ(
      submit("conv_marge", "x:1").error_message(),
      "spec.optimize.disabled_rules: there is no rule 'conv_marge'; 'mendel rules' lists them");
  EXPECT_EQ(submit("fold_bn", "x:").error_message(), "spec.optimize.shapes: no shape");
}

TEST(Lifecycle, WaitEndsWithItsTimeout) {
  TestServer server;
  Operations::Stub operations(server.channel());
  google::longrunning::WaitOperationRequest request;
  request.set_name(server.SubmitSearch(server.MakeModel("m")));
  request.mutable_timeout()->set_nanos(50'000'000);
  grpc::ClientContext context;
  Prepare(context);
  Operation operation;
  ASSERT_TRUE(operations.WaitOperation(&context, request, &operation).ok());
  EXPECT_FALSE(operation.done());
}

TEST(Lifecycle, PagesOfJobs) {
  TestServer server;
  const std::string model = server.MakeModel("m");
  for (int i = 0; i < 5; ++i) server.SubmitSearch(model);
  v1::Jobs::Stub jobs(server.channel());
  v1::ListJobsRequest request;
  request.set_page_size(2);
  std::set<std::string> names;
  int pages = 0;
  do {
    grpc::ClientContext context;
    Prepare(context);
    v1::ListJobsResponse response;
    ASSERT_TRUE(jobs.ListJobs(&context, request, &response).ok());
    for (const v1::Job& job : response.jobs()) names.insert(job.name());
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty() && pages < 9);
  EXPECT_EQ(names.size(), 5u);
  EXPECT_EQ(pages, 3);
  request.set_page_token("nonsense");
  grpc::ClientContext context;
  Prepare(context);
  v1::ListJobsResponse response;
  EXPECT_EQ(jobs.ListJobs(&context, request, &response).error_code(), grpc::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace mendel::server
