#include "server/jobs/worker_outcome.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "google/rpc/error_details.pb.h"
#include "server/jobs/bundle.h"
#include "server/jobs/from_json.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

constexpr size_t kKeptAnswer = 1 << 20;

/// The text without paths. Messages of a worker or its sandbox may name its folder, its inputs or
/// the program, which clients must not see.
std::string WithoutPaths(const std::string& text, const EndedWorker& worker,
                         const JobFolder& folder, const RunnerOptions& options) {
  std::string result = absl::StrReplaceAll(
      text, {{folder.path() + "/", ""}, {folder.path(), "."}, {" /job/", " "}, {"'/job/", "'"}});
  if (!worker.command.views.empty()) {
    // Blobs are two folders deep (server/store/blob_store.h): their hashes may be reported.
    const std::filesystem::path blobs =
        std::filesystem::path(worker.command.views.front().source).parent_path().parent_path();
    result = absl::StrReplaceAll(result, {{blobs.string() + "/", ""}});
  }
  const std::string program = std::filesystem::path(options.executable).parent_path().string();
  if (program.size() > 1) result = absl::StrReplaceAll(result, {{program + "/", ""}});
  return result;
}

/// Converts to ASCII: messages of the API are UTF-8, but logs contain any bytes.
std::string Ascii(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) {
        return (c < ' ' && c != '\n' && c != '\t') || static_cast<unsigned char>(c) > 126;
      },
      '?');
  return text;
}

/// The end of a log, for a sentence.
std::string LastWords(std::string log) {
  constexpr size_t kMost = 400;
  log.erase(log.find_last_not_of(" \n\t") + 1);
  return log.size() > kMost ? "..." + log.substr(log.size() - kMost) : log;
}

std::string ReasonOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kAlreadyExists:
      return "INVALID_INPUT";
    case absl::StatusCode::kUnimplemented:
      return "UNSUPPORTED";
    case absl::StatusCode::kFailedPrecondition:
      return "REFUSED";
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return "UNDECIDED";
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return "WORKER_INTERNAL";
    default:
      return "INPUT_OUTPUT";
  }
}

google::rpc::Status ErrorOf(const EndedWorker& worker, const absl::Status& said,
                            const std::string& last_words) {
  const WorkerResult& result = worker.result;
  switch (result.end) {
    case WorkerEnd::kCrashed:
      return MakeError(absl::StatusCode::kInternal, "WORKER_CRASHED",
                       Cat("the worker crashed (signal ", result.state.signal, ")"),
                       {{"signal", Cat(result.state.signal)}});
    case WorkerEnd::kKilled:
      return MakeError(absl::StatusCode::kUnavailable, "WORKER_KILLED", WhyKilled(worker),
                       {{"signal", Cat(result.state.signal)},
                        {"memory_bytes", Cat(result.memory_bytes)},
                        {"limit_bytes", Cat(worker.limits.memory_bytes)}});
    case WorkerEnd::kMemory:
      return MakeError(
          absl::StatusCode::kResourceExhausted, "WORKER_OUT_OF_MEMORY",
          Cat("the worker needs more than ", worker.limits.memory_bytes, " bytes of memory"),
          {{"limit_bytes", Cat(worker.limits.memory_bytes)}});
    case WorkerEnd::kWallTime:
      return MakeError(
          absl::StatusCode::kDeadlineExceeded, "WORKER_TIMEOUT",
          Cat("the job took longer than ", worker.limits.wall_micros / 1'000'000, " seconds"),
          {{"limit_seconds", Cat(worker.limits.wall_micros / 1'000'000)}});
    case WorkerEnd::kOutput:
      return MakeError(absl::StatusCode::kResourceExhausted, "WORKER_OUTPUT",
                       Cat("the worker wrote too much: ", result.what), {{"what", result.what}});
    case WorkerEnd::kExited:
    case WorkerEnd::kStopped:
      break;
  }
  if (said.ok()) {
    // A sandbox that does not start prints the reason on standard error.
    return MakeError(absl::StatusCode::kInternal, "WORKER_INTERNAL",
                     Cat("the worker ended with code ", result.state.code,
                         last_words.empty() ? std::string(" and gave no reason")
                                            : Cat("; it said: ", last_words)),
                     {{"code", Cat(result.state.code)}});
  }
  return MakeError(said.code(), ReasonOf(said.code()), std::string(said.message()));
}

bool NeedsBundle(const google::rpc::Status& error) {
  google::rpc::ErrorInfo info;
  return error.details_size() > 0 && error.details(0).UnpackTo(&info) &&
         info.reason().starts_with("WORKER_");
}

/// The archive is in a folder where no worker can write.
absl::StatusOr<std::string> AdoptBundle(const EndedWorker& worker, const google::rpc::Status& error,
                                        const JobFolder& folder, const RunnerOptions& options,
                                        BlobStore& blobs) {
  std::string command = "mendel";
  for (const std::string& word : worker.command.arguments) command += Cat(" '", word, "'");
  std::string inputs;
  for (const View& view : worker.command.views) {
    inputs += Cat("in/", view.where, " is blob ",
                  std::filesystem::path(view.source).filename().string(), "\n");
  }
  const WorkerResult& result = worker.result;
  const std::string report =
      Cat(options.version, "\njob: ", worker.job.job.name(), ", attempt ",
          worker.job.job.attempts(), "\nreason: ", error.message(), "\nexit code ",
          result.state.code, ", signal ", result.state.signal, "\nsandbox: ", worker.sandbox,
          "\nmemory limit: ", worker.limits.memory_bytes,
          " bytes\ncommand, in a folder with the files below:\n", command, "\n", inputs);
  const std::string log = Ascii(WithoutPaths(result.log, worker, folder, options));
  const std::string path = folder.path() + "/bundle.tar";
  MENDEL_RETURN_IF_ERROR(WriteTar(
      path, {{"report.txt", report},
             {"spec.txt", worker.job.job.spec().DebugString()},
             {"log.txt", log},
             {"answer.json",
              WithoutPaths(result.answer.substr(0, kKeptAnswer), worker, folder, options)}}));
  const auto blob = blobs.Adopt(path, ProjectOf(worker.job.job.name()));
  std::error_code code;
  std::filesystem::remove(path, code);
  MENDEL_RETURN_IF_ERROR(blob.status());
  return BlobName(*blob);
}

/// An error when the store failed; a plan without name when the worker delivered none.
absl::StatusOr<std::optional<v1::Plan>> DeliveredPlan(const EndedWorker& worker,
                                                      const JobFolder& folder, BlobStore& blobs,
                                                      const Clock& clock) {
  const auto path = folder.Delivered(kPlanFile);
  auto plan = PlanFromJson(worker.result.answer);
  if (!path.ok() || !plan.ok()) return std::nullopt;
  MENDEL_ASSIGN_OR_RETURN(const BlobId blob, blobs.Adopt(*path, ProjectOf(worker.job.job.name())));
  plan->set_name(JoinName(blob.project, Cat("plans/", blob.sha256)));
  plan->set_blob(BlobName(blob));
  plan->set_size_bytes(blob.size);
  plan->set_model(worker.command.model);
  plan->set_job(worker.job.job.name());
  const int64_t now = clock.WallMicros();
  plan->mutable_create_time()->set_seconds(now / 1'000'000);
  plan->mutable_create_time()->set_nanos(static_cast<int32_t>(now % 1'000'000 * 1000));
  return *plan;
}

}  // namespace

std::string WhyKilled(const EndedWorker& worker) {
  return Cat("attempt ", worker.job.job.attempts(), ": the worker was killed from outside (signal ",
             worker.result.state.signal,
             "), by a person, a program or a machine without memory; it was last seen with ",
             worker.result.memory_bytes, " of ", worker.limits.memory_bytes, " bytes");
}

google::rpc::Status MakeError(absl::StatusCode code, const std::string& reason,
                              const std::string& message,
                              const std::map<std::string, std::string>& metadata) {
  google::rpc::Status status;
  status.set_code(static_cast<int>(code));
  status.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("mendel");
  for (const auto& [name, value] : metadata) (*info.mutable_metadata())[name] = value;
  status.add_details()->PackFrom(info);
  return status;
}

absl::StatusOr<Outcome> MakeOutcome(const EndedWorker& worker, const JobFolder& folder,
                                    const RunnerOptions& options, BlobStore& blobs,
                                    const Clock& clock) {
  const WorkerResult& result = worker.result;
  Outcome outcome;
  if (result.end == WorkerEnd::kExited && worker.command.makes_plan && result.state.code == 0) {
    MENDEL_ASSIGN_OR_RETURN(outcome.plan, DeliveredPlan(worker, folder, blobs, clock));
  } else if (result.end == WorkerEnd::kExited && !worker.command.makes_plan &&
             (result.state.code <= 1 || result.state.code == 3)) {
    if (auto verdict = VerdictFromJson(result.answer); verdict.ok())
      outcome.verdict = *std::move(verdict);
  }
  if (outcome.plan.has_value() || outcome.verdict.has_value()) {
    outcome.state = v1::JOB_STATE_SUCCEEDED;
    return outcome;
  }
  if (worker.cancelled) {
    outcome.state = v1::JOB_STATE_CANCELLED;
    return outcome;
  }
  outcome.state = v1::JOB_STATE_FAILED;
  absl::Status said = ErrorFromJson(result.answer);
  if (!said.ok())
    said = absl::Status(said.code(),
                        WithoutPaths(std::string(said.message()), worker, folder, options));
  outcome.error =
      ErrorOf(worker, said, LastWords(Ascii(WithoutPaths(result.log, worker, folder, options))));
  if (NeedsBundle(outcome.error)) {
    MENDEL_ASSIGN_OR_RETURN(outcome.bundle,
                            AdoptBundle(worker, outcome.error, folder, options, blobs));
  }
  return outcome;
}

}  // namespace mendel::server
