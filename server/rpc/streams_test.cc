// Watchers, draining, and many clients at once.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/status.h"
#include "google/longrunning/operations.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "mendel/v1/jobs.grpc.pb.h"
#include "server/rpc/test_server.h"

namespace mendel::server {
namespace {

TEST(Streams, SlowWatcherLosesProgressOnly) {
  TestServer server;
  const std::string job = server.SubmitSearch(server.MakeModel("m"));
  v1::Jobs::Stub jobs(server.channel(true));
  v1::WatchJobRequest request;
  request.set_name(job);
  grpc::ClientContext context;
  Prepare(context);
  auto stream = jobs.WatchJob(&context, request);
  v1::JobEvent event;
  ASSERT_TRUE(stream->Read(&event));
  server.WorkOnce(400);  // at once, while nobody reads
  std::vector<v1::JobEvent> events = {event};
  while (stream->Read(&event)) events.push_back(event);
  EXPECT_TRUE(stream->Finish().ok());
  std::vector<v1::JobState> states;
  int64_t progress = 0;
  int64_t last = 0;
  for (const v1::JobEvent& one : events) {
    EXPECT_GT(one.sequence(), last);
    last = one.sequence();
    if (one.has_progress()) {
      progress = one.progress().candidates();
    } else {
      states.push_back(one.state());
    }
  }
  EXPECT_EQ(states, (std::vector<v1::JobState>{v1::JOB_STATE_PENDING, v1::JOB_STATE_RUNNING,
                                               v1::JOB_STATE_SUCCEEDED}));
  EXPECT_EQ(progress, 399);
}

TEST(Streams, WatchersOfUnknownJobsAndDeletedOnes) {
  TestServer server;
  v1::Jobs::Stub jobs(server.channel());
  v1::WatchJobRequest request;
  request.set_name("jobs/01234567-89ab-cdef-0123-456789abcdef");
  grpc::ClientContext context;
  Prepare(context);
  auto stream = jobs.WatchJob(&context, request);
  v1::JobEvent event;
  EXPECT_FALSE(stream->Read(&event));
  EXPECT_EQ(stream->Finish().error_code(), grpc::NOT_FOUND);
}

bool Serving(TestServer& server, const std::string& service) {
  const auto health = grpc::health::v1::Health::NewStub(server.channel(true));
  grpc::health::v1::HealthCheckRequest check;
  check.set_service(service);
  grpc::health::v1::HealthCheckResponse answer;
  grpc::ClientContext context;
  Prepare(context);
  EXPECT_TRUE(health->Check(&context, check, &answer).ok()) << service;
  return answer.status() == grpc::health::v1::HealthCheckResponse::SERVING;
}

TEST(Streams, HealthReflectsTheStores) {
  TestServer server;
  server.rpc().SetHealth(true, false);
  EXPECT_TRUE(Serving(server, ""));
  EXPECT_TRUE(Serving(server, "mendel.v1.Jobs"));
  EXPECT_FALSE(Serving(server, "google.bytestream.ByteStream"));
  server.rpc().SetHealth(false, true);
  EXPECT_FALSE(Serving(server, ""));
  EXPECT_FALSE(Serving(server, "mendel.v1.Jobs"));
  EXPECT_FALSE(Serving(server, "google.bytestream.ByteStream"));
  server.rpc().SetHealth(true, true);
  EXPECT_TRUE(Serving(server, "google.bytestream.ByteStream"));
  server.rpc().BeginDrain();
  server.rpc().SetHealth(true, true);
  EXPECT_FALSE(Serving(server, "")) << "a check of the stores ends no drain";
}

TEST(Streams, DrainTellsEverybody) {
  TestServer server;
  const std::string model = server.MakeModel("m");
  const std::string job = server.SubmitSearch(model);
  v1::Jobs::Stub jobs(server.channel(true));
  v1::WatchJobRequest request;
  request.set_name(job);
  grpc::ClientContext watch;
  Prepare(watch);
  auto stream = jobs.WatchJob(&watch, request);
  v1::JobEvent event;
  ASSERT_TRUE(stream->Read(&event));
  const std::vector<std::string> services = {"",
                                             "mendel.v1.Jobs",
                                             "mendel.v1.Models",
                                             "mendel.v1.Plans",
                                             "mendel.v1.Verifier",
                                             "google.longrunning.Operations",
                                             "google.bytestream.ByteStream"};
  for (const std::string& service : services) EXPECT_TRUE(Serving(server, service)) << service;
  server.rpc().BeginDrain();
  for (const std::string& service : services) EXPECT_FALSE(Serving(server, service)) << service;
  while (stream->Read(&event)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::UNAVAILABLE);
  v1::SubmitJobRequest submit;
  submit.mutable_spec()->mutable_optimize()->set_model(model);
  google::longrunning::Operation operation;
  grpc::ClientContext context;
  Prepare(context);
  EXPECT_EQ(jobs.SubmitJob(&context, submit, &operation).error_code(), grpc::UNAVAILABLE);
  v1::GetJobRequest get;
  get.set_name(job);
  v1::Job answer;
  grpc::ClientContext still;
  Prepare(still);
  EXPECT_TRUE(jobs.GetJob(&still, get, &answer).ok());
  server.rpc().Stop(1'000'000);
}

TEST(Streams, StopEndsCallsThatWait) {
  TestServer server;
  google::longrunning::Operations::Stub operations(server.channel(true));
  google::longrunning::WaitOperationRequest request;
  request.set_name(server.SubmitSearch(server.MakeModel("m")));
  std::thread waiter([&] {
    grpc::ClientContext context;
    Prepare(context);
    google::longrunning::Operation operation;
    const grpc::Status status = operations.WaitOperation(&context, request, &operation);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_FALSE(operation.done());
  });
  while (server.env().watchers.taken() == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  server.rpc().BeginDrain();
  waiter.join();
}

TEST(Streams, ManyClientsAtOnce) {
  constexpr int kClients = 64;
  TestServer server;
  const std::string model = server.MakeModel("m");
  std::atomic<int> seen = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      v1::Jobs::Stub jobs(server.channel(true));
      v1::SubmitJobRequest submit;
      submit.mutable_spec()->mutable_optimize()->set_model(model);
      submit.mutable_spec()->mutable_optimize()->set_seed(static_cast<uint64_t>(i) + 1);
      submit.set_request_id(Cat("client-", i));
      google::longrunning::Operation operation;
      grpc::ClientContext context;
      Prepare(context);
      const grpc::Status submitted = jobs.SubmitJob(&context, submit, &operation);
      ASSERT_TRUE(submitted.ok()) << submitted.error_message();
      v1::WatchJobRequest request;
      request.set_name(operation.name());
      grpc::ClientContext watch;
      Prepare(watch);
      watch.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(120));
      auto stream = jobs.WatchJob(&watch, request);
      v1::JobEvent event;
      v1::JobEvent last;
      while (stream->Read(&event)) last = event;
      const grpc::Status status = stream->Finish();
      EXPECT_TRUE(status.ok()) << status.error_message();
      if (last.state() == v1::JOB_STATE_SUCCEEDED) ++seen;
    });
  }
  for (int done = 0; done < kClients;) {
    const auto counts = server.env().jobs.CountJobs();
    ASSERT_TRUE(counts.ok());
    const auto pending = counts->find(v1::JOB_STATE_PENDING);
    if (pending == counts->end() || pending->second == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    server.WorkOnce(3);
    ++done;
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(seen, kClients);
  EXPECT_EQ(server.env().watchers.taken(), 0);
}

}  // namespace
}  // namespace mendel::server
