// A job from submission to download, as clients see it.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "google/longrunning/operations.grpc.pb.h"
#include "mendel/v1/jobs.grpc.pb.h"
#include "mendel/v1/plans.pb.h"
#include "server/rpc/test_server.h"

namespace mendel::server {
namespace {

using google::longrunning::Operation;
using google::longrunning::Operations;

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
  EXPECT_EQ(ReadBlob(server.channel(), answer.blob(), 0, 0), "plan of " + name);
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
