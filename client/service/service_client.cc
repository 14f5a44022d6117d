#include "client/service/service_client.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/random.h"
#include "base/status.h"
#include "client/service/channel.h"
#include "client/service/download.h"
#include "client/service/make_service_client.h"
#include "client/service/model_files.h"
#include "client/service/upload.h"

namespace mendel {
namespace {

constexpr int kMaxPage = 1000;
constexpr int kDigestsPerQuestion = 10'000;

class Client final : public ServiceClient {
 public:
  Client(std::unique_ptr<Channel> channel, const RetryPolicy& policy, Retrier::Sleep sleep,
         Retrier::Report report, std::string project)
      : channel_(std::move(channel)),
        policy_(policy),
        sleep_(std::move(sleep)),
        report_(std::move(report)),
        project_(std::move(project)) {}

  absl::StatusOr<v1::Model> Upload(const std::string& path,
                                   const TransferFunction& progress) override {
    MENDEL_ASSIGN_OR_RETURN(LocalModel local, FindModelFiles(path));
    local.manifest.set_parent(Parent());
    absl::StatusOr<v1::Model> model = absl::InternalError("no attempt");
    // The server may have dropped an old blob between telling that it has it and the manifest:
    // asked twice.
    for (int attempt = 0; attempt < 2; ++attempt) {
      MENDEL_RETURN_IF_ERROR(SendMissing(local, progress));
      model = Query<v1::Model>(local.manifest);
      if (!absl::IsFailedPrecondition(model.status())) break;
    }
    return model;
  }

  absl::StatusOr<std::string> Submit(const v1::JobSpec& spec,
                                     const SubmitOptions& options) override {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = spec;
    request.set_priority(options.priority);
    const auto entropy = FreshEntropy();
    request.set_request_id(options.request_id.empty()
                               ? Sha256Hex(Cat(entropy[0], "/", entropy[1])).substr(0, 32)
                               : options.request_id);
    MENDEL_ASSIGN_OR_RETURN(const auto operation, Query<google::longrunning::Operation>(request));
    return operation.name();
  }

  absl::StatusOr<v1::Job> Watch(const std::string& job, int64_t after_sequence,
                                const EventFunction& on_event) override {
    Retrier retrier = NewRetrier();
    v1::WatchJobRequest request;
    request.set_name(job);
    request.set_after_sequence(after_sequence);
    while (true) {
      CallStatus result = channel_->Watch(request, [&](const v1::JobEvent& event) {
        if (event.sequence() <= request.after_sequence()) return;
        request.set_after_sequence(event.sequence());
        retrier.Progress();
        if (on_event) on_event(event);
      });
      if (result.ok()) {
        MENDEL_ASSIGN_OR_RETURN(v1::Job ended, GetJob(job));
        if (HasEnded(ended.state())) return ended;
        result.status = absl::UnavailableError("the server ended the watch");
      }
      if (!retrier.Again(result)) return result.status;
    }
  }

  absl::StatusOr<v1::Job> GetJob(const std::string& job) override {
    v1::GetJobRequest request;
    request.set_name(job);
    return Query<v1::Job>(request);
  }

  absl::StatusOr<std::vector<v1::Job>> ListJobs(const JobQuery& query) override {
    v1::ListJobsRequest request;
    request.set_client(query.client);
    request.set_filter(query.filter);
    request.set_parent(Parent());
    for (const v1::JobState state : query.states) request.add_states(state);
    return Pages<v1::ListJobsResponse, v1::Job>(request, query.limit,
                                                [](auto& page) { return page.mutable_jobs(); });
  }

  absl::StatusOr<v1::Job> Cancel(const std::string& job) override {
    v1::CancelJobRequest request;
    request.set_name(job);
    return Query<v1::Job>(request);
  }

  absl::StatusOr<v1::Plan> GetPlan(const std::string& plan) override {
    v1::GetPlanRequest request;
    request.set_name(plan);
    return Query<v1::Plan>(request);
  }

  absl::StatusOr<std::vector<v1::Plan>> ListPlans(const PlanQuery& query) override {
    v1::ListPlansRequest request;
    request.set_model(query.model);
    request.set_filter(query.filter);
    if (query.model.empty()) request.set_parent(Parent());
    return Pages<v1::ListPlansResponse, v1::Plan>(request, query.limit,
                                                  [](auto& page) { return page.mutable_plans(); });
  }

  absl::StatusOr<v1::Plan> Download(const std::string& plan, const std::string& path,
                                    const TransferFunction& progress) override {
    MENDEL_ASSIGN_OR_RETURN(v1::Plan found, GetPlan(plan));
    Retrier retrier = NewRetrier();
    MENDEL_RETURN_IF_ERROR(DownloadBlob(*channel_, retrier, found.blob(), path, progress));
    return found;
  }

  absl::StatusOr<bool> Health(const std::string& service) override {
    grpc::health::v1::HealthCheckRequest request;
    grpc::health::v1::HealthCheckResponse response;
    request.set_service(service);
    MENDEL_RETURN_IF_ERROR(channel_->Call(request, response).status);
    return response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
  }

 private:
  Retrier NewRetrier() const { return Retrier(policy_, FreshEntropy()[0], sleep_, report_); }

  template <class Response, class Request>
  absl::StatusOr<Response> Query(const Request& request) {
    Retrier retrier = NewRetrier();
    while (true) {
      Response response;
      const CallStatus result = channel_->Call(request, response);
      if (result.ok()) return response;
      if (!retrier.Again(result)) return result.status;
    }
  }

  template <class Response, class Item, class Request, class Items>
  absl::StatusOr<std::vector<Item>> Pages(Request request, int limit, const Items& items_of) {
    std::vector<Item> items;
    do {
      request.set_page_size(
          limit == 0 ? kMaxPage : std::min(kMaxPage, limit - static_cast<int>(items.size())));
      MENDEL_ASSIGN_OR_RETURN(Response page, Query<Response>(request));
      for (Item& item : *items_of(page)) items.push_back(std::move(item));
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty() &&
             (limit == 0 || static_cast<int>(items.size()) < limit));
    return items;
  }

  absl::StatusOr<std::vector<v1::Digest>> MissingOf(const LocalModel& local) {
    std::vector<v1::Digest> missing;
    v1::FindMissingBlobsRequest request;
    request.set_parent(Parent());
    const auto ask = [&]() -> absl::Status {
      MENDEL_ASSIGN_OR_RETURN(const auto response, Query<v1::FindMissingBlobsResponse>(request));
      missing.insert(missing.end(), response.missing().begin(), response.missing().end());
      request.clear_digests();
      return absl::OkStatus();
    };
    for (const v1::ModelFile& file : local.manifest.files()) {
      *request.add_digests() = file.digest();
      if (request.digests_size() == kDigestsPerQuestion) MENDEL_RETURN_IF_ERROR(ask());
    }
    if (request.digests_size() > 0) MENDEL_RETURN_IF_ERROR(ask());
    return missing;
  }

  absl::Status SendMissing(const LocalModel& local, const TransferFunction& progress) {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<v1::Digest> missing, MissingOf(local));
    int64_t before = local.size_bytes;
    for (const v1::Digest& digest : missing) before -= digest.size_bytes();
    for (const v1::Digest& digest : missing) {
      Retrier retrier = NewRetrier();
      const auto known = local.path_of.find(digest.sha256());
      if (known == local.path_of.end())
        return absl::DataLossError("the server requests a blob that was not offered");
      MENDEL_RETURN_IF_ERROR(UploadBlob(
          *channel_, retrier, known->second, digest,
          [&](int64_t done, int64_t) {
            if (progress) progress(before + done, local.size_bytes);
          },
          project_));
      before += digest.size_bytes();
    }
    return absl::OkStatus();
  }

  std::string Parent() const { return project_.empty() ? "" : Cat("projects/", project_); }

  std::unique_ptr<Channel> channel_;
  RetryPolicy policy_;
  Retrier::Sleep sleep_;
  Retrier::Report report_;
  const std::string project_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ServiceClient>> ConnectService(const ServiceOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<Channel> channel, OpenChannel(options));
  RetryPolicy policy;
  policy.give_up_seconds = options.retry_seconds;
  return MakeServiceClient(std::move(channel), policy, nullptr, options.on_retry, options.project);
}

std::unique_ptr<ServiceClient> MakeServiceClient(std::unique_ptr<Channel> channel,
                                                 const RetryPolicy& policy, Retrier::Sleep sleep,
                                                 Retrier::Report report, std::string project) {
  return std::make_unique<Client>(std::move(channel), policy, std::move(sleep), std::move(report),
                                  std::move(project));
}

bool HasEnded(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

absl::Status OutcomeOf(const v1::Job& job) {
  if (job.state() == v1::JOB_STATE_FAILED) {
    const auto code = static_cast<absl::StatusCode>(job.error().code());
    return absl::Status(code == absl::StatusCode::kOk ? absl::StatusCode::kUnknown : code,
                        Cat(job.name(), " failed: ", job.error().message()));
  }
  if (job.state() == v1::JOB_STATE_CANCELLED)
    return absl::CancelledError(Cat(job.name(), " was cancelled before it had a result"));
  return absl::OkStatus();
}

}  // namespace mendel
