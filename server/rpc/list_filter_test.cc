// Filters of lists: what they match, what they refuse, and pages that they leave whole.
#include "server/rpc/list_filter.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "base/status.h"
#include "google/longrunning/operations.grpc.pb.h"
#include "mendel/v1/jobs.grpc.pb.h"
#include "mendel/v1/models.grpc.pb.h"
#include "mendel/v1/plans.grpc.pb.h"
#include "server/rpc/test_server.h"

namespace mendel::server {
namespace {

constexpr std::array kFields = {FilterField{"client"}, FilterField{"model"},
                                FilterField{"priority", FieldKind::kNumber},
                                FilterField{"create_time", FieldKind::kTime}};

FilterRecord Record() {
  FilterRecord record;
  record.texts = {{"client", {"ann"}}, {"model", {"models/0a", "My ResNet-50 (v2).onnx"}}};
  record.numbers = {{"priority", -3}, {"create_time", 1'700'000'000.5}};
  return record;
}

bool Matches(std::string_view text) {
  const auto filter = ListFilter::Parse(text, kFields);
  EXPECT_TRUE(filter.ok()) << text << ": " << filter.status();
  return filter.ok() && filter->Matches(Record());
}

TEST(ListFilter, Terms) {
  for (const char* text :
       {"", "  ", "client = ann", "client=ann", "client = \"ANN\"", "client != bob",
        "model : resnet", "model:\"resnet-50 (V2)\"", "resnet", "\"my resnet\"",
        "model = models/0a", "priority = -3", "priority < 0 AND priority >= -3", "priority != 4",
        "client=ann AND model:onnx AND ann", "create_time > \"2023-11-14T22:13:20Z\"",
        "create_time <= \"2023-11-14T23:13:21+01:00\"", "model != resnet"})
    EXPECT_TRUE(Matches(text)) << text;
  for (const char* text : {"client = an", "client : bob", "client != ann", "model = resnet", "vgg",
                           "priority > -3", "client = ann AND client = bob",
                           "create_time < \"2023-11-14T22:13:20Z\"", "model != models/0a"})
    EXPECT_FALSE(Matches(text)) << text;
}

TEST(ListFilter, RefusesWhatItCannotDo) {
  for (const char* text :
       {"color = red", "client =", "= ann", "client = ann bob", "client = ann AND", "AND",
        "client = ann OR client = bob", "client < ann", "priority : 3", "priority = three",
        "priority = 3x", "create_time > yesterday", "client = \"ann", "client == ann",
        "client = = ann", "!= =", "client ! ann"}) {
    const auto filter = ListFilter::Parse(text, kFields);
    EXPECT_TRUE(absl::IsInvalidArgument(filter.status())) << text << ": " << filter.status();
  }
  EXPECT_FALSE(ListFilter::Parse(std::string(5000, 'a'), kFields).ok());
  std::string many = "a";
  for (int i = 0; i < 40; ++i) many += " AND a";
  EXPECT_FALSE(ListFilter::Parse(many, kFields).ok());
}

/// Lists with a filter, page by page; the names that came.
template <class Stub, class Request, class Response, class Items>
std::set<std::string> All(Stub& stub,
                          grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&,
                                                     Response*),
                          Request request, const Items& items) {
  std::set<std::string> names;
  do {
    grpc::ClientContext context;
    Prepare(context);
    Response response;
    const grpc::Status status = (stub.*call)(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    for (const auto& item : items(response)) EXPECT_TRUE(names.insert(item.name()).second);
    EXPECT_LE(items(response).size(), request.page_size());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return names;
}

TEST(ListFilter, ListsOfAServer) {
  TestServer server;
  const std::string first = server.MakeModel("first"), second = server.MakeModel("second");
  std::set<std::string> of_first;
  for (int i = 0; i < 7; ++i) {
    of_first.insert(server.SubmitSearch(first));
    server.SubmitSearch(second);
  }
  const std::string plan = server.WorkOnce(1);
  const auto jobs = v1::Jobs::NewStub(server.channel());
  v1::ListJobsRequest by_model;
  by_model.set_page_size(3);
  by_model.set_filter(Cat("model = ", first));
  const auto job_items = [](const v1::ListJobsResponse& response) { return response.jobs(); };
  EXPECT_EQ(All(*jobs, &v1::Jobs::Stub::ListJobs, by_model, job_items), of_first);
  by_model.set_filter("state = succeeded AND model : .onnx");
  EXPECT_EQ(All(*jobs, &v1::Jobs::Stub::ListJobs, by_model, job_items).size(), 1u);
  by_model.set_filter("state = failed");
  EXPECT_TRUE(All(*jobs, &v1::Jobs::Stub::ListJobs, by_model, job_items).empty());

  const auto models = v1::Models::NewStub(server.channel());
  v1::ListModelsRequest model_request;
  model_request.set_page_size(1);
  model_request.set_filter("size_bytes = 5");
  EXPECT_EQ(All(*models, &v1::Models::Stub::ListModels, model_request,
                [](const v1::ListModelsResponse& response) { return response.models(); }),
            std::set<std::string>{first});

  const auto plans = v1::Plans::NewStub(server.channel());
  v1::ListPlansRequest plan_request;
  plan_request.set_page_size(2);
  plan_request.set_filter("speedup < 1 AND size_bytes > 0 AND plans");
  EXPECT_EQ(All(*plans, &v1::Plans::Stub::ListPlans, plan_request,
                [](const v1::ListPlansResponse& response) { return response.plans(); }),
            std::set<std::string>{plan});
  plan_request.set_filter("nothing = 1");
  v1::ListPlansResponse response;
  grpc::ClientContext context;
  Prepare(context);
  const grpc::Status refused = plans->ListPlans(&context, plan_request, &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(refused.error_message().find("speedup"), std::string::npos) << "the fields are named";

  const auto operations = google::longrunning::Operations::NewStub(server.channel());
  google::longrunning::ListOperationsRequest operation_request;
  operation_request.set_page_size(4);
  operation_request.set_filter(Cat("model = ", first));
  EXPECT_EQ(
      All(*operations, &google::longrunning::Operations::Stub::ListOperations, operation_request,
          [](const google::longrunning::ListOperationsResponse& page) {
            return page.operations();
          }),
      of_first);
}

}  // namespace
}  // namespace mendel::server
