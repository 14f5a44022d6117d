// Submissions of jobs: what is answered at once, what is refused, and what stays with the job.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "google/longrunning/operations.pb.h"
#include "mendel/v1/jobs.grpc.pb.h"
#include "server/rpc/test_server.h"
#include "server/trace_parent.h"

namespace mendel::server {
namespace {

using google::longrunning::Operation;

TEST(Submissions, StoredPlanAnswersTheSameSearch) {
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

TEST(Submissions, ARequestIdIsOneRequestWhateverAnswersIt) {
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

TEST(Submissions, RebindsNeedADeviceThatSomeWorkerHas) {
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

TEST(Submissions, TracesAreAcceptedWhereTheyAreWellFormed) {
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

TEST(Submissions, RulesAndShapesAreCheckedAtSubmit) {
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

}  // namespace
}  // namespace mendel::server
