#include "server/rpc/fuzz_world.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/check.h"
#include "base/hash.h"
#include "base/status.h"
#include "server/jobs/from_json.h"
#include "server/jobs/work_key.h"
#include "server/rpc/admit.h"
#include "server/rpc/errors.h"
#include "server/rpc/message_mutator.h"
#include "server/rpc/names.h"
#include "server/rpc/request_project.h"
#include "server/store/fsck.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

ServerOptions SmallOptions() {
  ServerOptions options;
  options.rpc_threads = 1;
  options.max_blob_bytes = options.max_model_bytes = 1 << 20;
  options.max_digests = options.max_model_files = 20;
  options.max_pending_jobs = 8;
  options.max_pending_jobs_per_client = 5;
  options.max_page_size = 10;
  return options;
}

std::string NewFolder() {
  std::string pattern = std::filesystem::exists("/dev/shm") ? "/dev/shm/mendel-fuzz-XXXXXX"
                                                            : "/tmp/mendel-fuzz-XXXXXX";
  MENDEL_CHECK(mkdtemp(pattern.data()) != nullptr);
  return pattern;
}

}  // namespace

BlobId BlobOf(std::string_view bytes) {
  return {Sha256Hex(bytes), static_cast<int64_t>(bytes.size())};
}

World::World()
    : folder_(NewFolder()),
      options_(SmallOptions()),
      log_(LogLevel::kDebug, SystemClock(), [](const std::string&) {}),
      jobs_(*OpenSqliteStore(folder_ + "/mendel.sqlite", SystemClock())),
      blobs_(*OpenBlobStore(folder_, {1 << 20, 8 << 20}, SystemClock())),
      authenticator_(*Authenticator::Create(options_, log_)),
      tracer_(*Tracer::Open("", "fuzz", log_)),
      env_{options_,
           *jobs_,
           *blobs_,
           SystemClock(),
           log_,
           metrics_,
           *authenticator_,
           *tracer_,
           [this](const v1::JobSpec& spec) { return WorkKey(spec, options_.runner); }} {}

World::~World() { std::filesystem::remove_all(folder_); }

void World::CheckStatus(const absl::Status& status) {
  MENDEL_CHECK(status.code() != absl::StatusCode::kInternal &&
               status.code() != absl::StatusCode::kUnknown);
  const google::rpc::Status reported = ToRpcStatus(status, "r1");
  MENDEL_CHECK(reported.message().find(folder_) == std::string::npos);
  MENDEL_CHECK(reported.ByteSizeLong() < 16384);
}

std::optional<Caller> World::Enter(std::string_view method, google::protobuf::Message& request) {
  const absl::StatusOr<std::string> project = TakeProject(request);
  CheckStatus(project.status());
  if (!project.ok()) return std::nullopt;
  const absl::StatusOr<Caller> caller = EnterProject(principal, method, *project);
  CheckStatus(caller.status());
  return caller.ok() ? std::optional<Caller>(*caller) : std::nullopt;
}

void World::Learn(google::protobuf::Message& answer) {
  ForEachText(answer, [&](const std::string& text) {
    if (!text.empty() && text.size() < 300) names_.push_back(text);
    return text;
  });
}

void World::Resolve(google::protobuf::Message& request) const {
  ForEachText(request, [&](const std::string& text) {
    const size_t at = text.size() > 1 && text[0] == '$'
                          ? static_cast<unsigned char>(text[1]) - size_t{'0'}
                          : names_.size();
    std::string result = at < names_.size() ? names_[at] : text;
    // libFuzzer learns the folder's name from the comparison; a client's own text may be reported
    // again.
    for (size_t found = result.find(folder_); found != std::string::npos;
         found = result.find(folder_)) {
      result.erase(found, folder_.size());
    }
    return result;
  });
}

void World::Write(const google::bytestream::WriteRequest& request) {
  if (upload_ == nullptr) upload_ = std::make_unique<Upload>(*blobs_, *jobs_, options_, principal);
  const absl::StatusOr<bool> done = upload_->Take(request);
  CheckStatus(done.status());
  if (!done.ok() || *done) upload_.reset();
}

void World::StopWriting() {
  if (upload_ != nullptr) CheckStatus(upload_->Stop().status());
  upload_.reset();
}

void World::Read(const google::bytestream::ReadRequest& request) {
  Download download(*blobs_, principal);
  google::bytestream::ReadResponse chunk;
  for (absl::StatusOr<bool> more = true; more.ok() && *more;) {
    more = download.Next(request, chunk);
    CheckStatus(more.status());
  }
}

void World::Watch(const v1::WatchJobRequest& given) {
  v1::WatchJobRequest request = given;
  if (!Enter("/mendel.v1.Jobs/WatchJob", request)) return;
  const absl::Status name = CheckJobName("name", request.name());
  CheckStatus(name);
  if (!name.ok() || request.after_sequence() < 0) return;
  auto events = jobs_->Events(request.name(), request.after_sequence(), 64);
  CheckStatus(events.status());
  for (size_t i = 1; events.ok() && i < events->size(); ++i)
    MENDEL_CHECK((*events)[i - 1].sequence() < (*events)[i].sequence());
}

void World::Wait(const google::longrunning::WaitOperationRequest& given) {
  google::longrunning::WaitOperationRequest request = given;
  if (!Enter("/google.longrunning.Operations/WaitOperation", request)) return;
  CheckStatus(handlers::FindOperation(env_, request.name()).status());
}

void World::Work(const v1::JobEvent& event) {
  if (!claimed_) claimed_ = *jobs_->Claim("worker", INT64_MAX, {});
  if (claimed_) CheckStatus(jobs_->AppendEvent(claimed_->job.name(), claimed_->fence, event));
}

void World::Answer(const google::protobuf::StringValue& answer) {
  const std::string& text = answer.value();
  const auto progress = ProgressFromJson(text);
  Outcome outcome;
  const absl::Status error = ErrorFromJson(text);
  if (const auto verdict = VerdictFromJson(text); verdict.ok()) outcome.verdict = *verdict;
  if (const auto plan = PlanFromJson(text); plan.ok()) outcome.plan = *plan;
  if (!claimed_) return;
  if (progress.ok()) {
    v1::JobEvent event;
    *event.mutable_progress() = progress->progress;
    CheckStatus(jobs_->AppendEvent(claimed_->job.name(), claimed_->fence, event));
  }
  const v1::JobSpec& spec = claimed_->job.spec();
  outcome.state = error.ok() ? v1::JOB_STATE_SUCCEEDED : v1::JOB_STATE_FAILED;
  outcome.error.set_code(static_cast<int>(error.code()));
  outcome.error.set_message(std::string(error.message()));
  if (outcome.plan) SetPlan(spec, *outcome.plan);
  CheckStatus(jobs_->Finish(claimed_->job.name(), claimed_->fence, outcome));
  const std::string key = env_.work_key(spec);
  if (outcome.plan && !key.empty()) CheckStatus(jobs_->RememberPlan(key, outcome.plan->name()));
  claimed_.reset();
}

void World::Clear() {
  upload_.reset();
  const auto report = Fsck(*jobs_, *blobs_);
  MENDEL_CHECK(report.ok());
  for (const std::string& violation : report->violations)
    std::fprintf(stderr, "%s\n", violation.c_str());
  MENDEL_CHECK(report->violations.empty());
  EndJobs();
  MENDEL_CHECK(jobs_->DeleteEndedBefore(INT64_MAX).ok());
  const Page<v1::Plan> plans = *jobs_->ListPlans(std::nullopt, "", 1000, "");
  for (const v1::Plan& plan : plans.items) MENDEL_CHECK(jobs_->DeletePlan(plan.name()).ok());
  const Page<v1::Model> models = *jobs_->ListModels(std::nullopt, 1000, "");
  for (const v1::Model& model : models.items) MENDEL_CHECK(jobs_->DeleteModel(model.name()).ok());
  MENDEL_CHECK(blobs_->Sweep({}, INT64_MAX).ok());
  names_.clear();
}

void World::SetPlan(const v1::JobSpec& spec, v1::Plan& plan) {
  BlobId blob = BlobOf(kFuzzContents[1]);
  blob.project = ProjectOf(claimed_->job.name());
  auto opened = blobs_->OpenUpload({"11234567-89ab-cdef-0123-456789abcdef", blob}, 0);
  if (opened.ok())
    MENDEL_CHECK((*opened)->Append(kFuzzContents[1]).ok() && (*opened)->Finish().ok());
  plan.set_name(JoinName(blob.project, "plans/" + blob.sha256));
  plan.set_blob(BlobName(blob));
  plan.set_size_bytes(blob.size);
  plan.set_model(spec.optimize().model());
  plan.set_job(claimed_->job.name());
}

void World::EndJobs() {
  if (claimed_) jobs_->Release(claimed_->job.name(), claimed_->fence, false).IgnoreError();
  claimed_.reset();
  for (auto job = jobs_->Claim("worker", INT64_MAX, {}); job.ok() && *job;
       job = jobs_->Claim("worker", INT64_MAX, {})) {
    Outcome outcome;
    outcome.state = v1::JOB_STATE_CANCELLED;
    MENDEL_CHECK(jobs_->Finish((*job)->job.name(), (*job)->fence, outcome).ok());
  }
  MENDEL_CHECK(jobs_->ExpireLeases(INT64_MAX, 1).ok());
}

}  // namespace mendel::server
