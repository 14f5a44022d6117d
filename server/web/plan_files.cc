#include "server/web/plan_files.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/status.h"
#include "server/jobs/watch_worker.h"
#include "server/rpc/errors.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

constexpr int64_t kMostSeconds = 300;

std::string FileOf(PlanFiles::Kind kind) {
  return kind == PlanFiles::Kind::kOnnx ? "plan.onnx" : "plan.html";
}

std::vector<std::string> CommandOf(PlanFiles::Kind kind) {
  if (kind == PlanFiles::Kind::kOnnx) return {"export", "in/plan/m.plan", "--onnx=out/plan.onnx"};
  return {"explain", "in/plan/m.plan", "--no-times", "--html=out/plan.html"};
}

/// A name that JobFolder takes: a part of the plan's digest, and the kind.
std::string FolderName(const v1::Plan& plan, PlanFiles::Kind kind) {
  const NameInProject name = SplitName(plan.name());
  const std::string digest = name.rest.substr(name.rest.find('/') + 1, 40);
  return JoinName(name.project,
                  Cat("jobs/", digest, kind == PlanFiles::Kind::kOnnx ? "-onnx" : "-html"));
}

/// The last line of the command's log: its error.
std::string LastLine(const std::string& log) {
  const size_t end = log.find_last_not_of('\n');
  if (end == std::string::npos) return "the command gave no reason";
  const size_t begin = log.rfind('\n', end);
  return log.substr(begin == std::string::npos ? 0 : begin + 1,
                    begin == std::string::npos ? end + 1 : end - begin);
}

}  // namespace

PlanFiles::PlanFiles(const RunnerOptions& options, const std::string& work_folder, BlobStore& blobs,
                     const Clock& clock)
    : options_(options), blobs_(blobs), clock_(clock) {
  options_.work_folder = work_folder.empty() ? "" : work_folder + "/plans";
}

PlanFiles::~PlanFiles() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const auto& [key, entry] : entries_) {
    if (entry->folder != nullptr) entry->folder->Clear(false);
  }
}

absl::StatusOr<std::optional<std::string>> PlanFiles::Get(const v1::Plan& plan, Kind kind) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string key = FolderName(plan, kind);
  const auto found = entries_.find(key);
  if (found == entries_.end()) {
    if (waiting_.size() >= kWaitingFiles)
      return WithRetry(absl::ResourceExhaustedError("too many files of plans wait to be made"), 5);
    auto entry = std::make_unique<Entry>();
    entry->plan = plan;
    entry->kind = kind;
    entries_[key] = std::move(entry);
    waiting_.push_back(key);
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    changed_.notify_all();
    return std::optional<std::string>();
  }
  if (!found->second->ended) return std::optional<std::string>();
  if (found->second->path.ok()) return std::optional<std::string>(*found->second->path);
  const absl::Status failed = found->second->path.status();
  entries_.erase(found);
  return failed;
}

void PlanFiles::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const std::string key = waiting_.front();
    waiting_.pop_front();
    Entry& entry = *entries_.at(key);  // an entry goes only after it has ended
    lock.unlock();
    absl::StatusOr<std::string> path = Make(entry);
    lock.lock();
    const bool keep = path.ok();
    if (!keep && entry.folder != nullptr) {
      entry.folder->Clear(false);
      entry.folder.reset();
    }
    entry.path = std::move(path);
    entry.ended = true;
    if (keep) kept_.push_back(key);
    if (kept_.size() > kKeptFiles) DropOldest();
  }
}

void PlanFiles::DropOldest() {
  const auto found = entries_.find(kept_.front());
  kept_.pop_front();
  found->second->folder->Clear(false);
  entries_.erase(found);
}

absl::Status PlanFiles::OpenSandbox() {
  if (sandbox_ != nullptr) return absl::OkStatus();
  if (options_.work_folder.empty())
    return absl::FailedPreconditionError(
        "this server makes no files of plans: it has no work folder");
  std::error_code code;
  if (options_.executable.empty()) options_.executable = "/proc/self/exe";
  options_.executable = std::filesystem::canonical(options_.executable, code).string();
  std::filesystem::create_directories(std::filesystem::path(options_.work_folder) / "jobs", code);
  if (!code) options_.work_folder = std::filesystem::canonical(options_.work_folder, code).string();
  if (code) return absl::FailedPreconditionError("the folder for plans' files cannot be made");
  MENDEL_ASSIGN_OR_RETURN(
      sandbox_, ChooseSandbox(options_.sandbox, options_.executable, options_.work_folder));
  // A killed server may have left files and processes.
  SweepJobFolders(
      options_.work_folder, [](const std::string&) { return true; },
      [this](const std::string& folder) { sandbox_->EndStrays(folder); });
  return absl::OkStatus();
}

absl::StatusOr<std::string> PlanFiles::Make(Entry& entry) {
  MENDEL_RETURN_IF_ERROR(OpenSandbox());
  MENDEL_ASSIGN_OR_RETURN(const BlobId blob, ParseBlobName(entry.plan.blob()));
  MENDEL_ASSIGN_OR_RETURN(std::string source, blobs_.Path(blob));
  MENDEL_ASSIGN_OR_RETURN(
      entry.folder,
      JobFolder::Open(options_.work_folder, FolderName(entry.plan, entry.kind), getpid()));
  WorkerLimitsWatched limits;
  limits.wall_micros = kMostSeconds * 1'000'000;
  limits.memory_bytes = MemoryLimit(options_);
  limits.output_bytes = options_.max_output_bytes;
  const int64_t cpus = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 1024);
  const Launch launch{options_.executable,
                      CommandOf(entry.kind),
                      entry.folder->path(),
                      {{std::move(source), "plan/m.plan"}},
                      {limits.memory_bytes, kMostSeconds * cpus, limits.output_bytes},
                      false};
  MENDEL_ASSIGN_OR_RETURN(const std::unique_ptr<ChildProcess> child, sandbox_->Start(launch));
  const auto order = [this] {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stopping_ ? Order::kKill : Order::kGoOn;
  };
  const WorkerResult result =
      WatchWorker(*child, *entry.folder, limits, {[](std::string_view) {}, order}, clock_);
  if (result.end != WorkerEnd::kExited || result.state.code != 0)
    return absl::FailedPreconditionError(
        Cat("the file cannot be made: ", WithoutPaths(LastLine(result.log))));
  return entry.folder->Delivered(FileOf(entry.kind));
}

}  // namespace mendel::server
