#include "server/web/downloads.h"

#include <fcntl.h>
#include <google/protobuf/util/time_util.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "server/rpc/handlers.h"
#include "server/web/job_json.h"

namespace mendel::server {
namespace {

constexpr size_t kLongestLog = 8 << 20;

class BlobBody final : public HttpBody {
 public:
  BlobBody(std::unique_ptr<BlobReader> reader, std::unique_ptr<Permits::Permit> permit,
           Metrics& metrics)
      : reader_(std::move(reader)), permit_(std::move(permit)), metrics_(metrics) {}
  int64_t size() const override { return reader_->size(); }
  absl::StatusOr<int64_t> Read(int64_t offset, char* buffer, int64_t capacity) override {
    MENDEL_ASSIGN_OR_RETURN(const int64_t got, reader_->Read(offset, buffer, capacity));
    metrics_.Add("mendel_transfer_bytes_total", {{"direction", "read"}}, static_cast<double>(got));
    return got;
  }

 private:
  const std::unique_ptr<BlobReader> reader_;
  const std::unique_ptr<Permits::Permit> permit_;
  Metrics& metrics_;
};

/// A file of this machine; its name may go while it is read.
class FileBody final : public HttpBody {
 public:
  FileBody(Descriptor file, int64_t size, std::unique_ptr<Permits::Permit> permit)
      : file_(std::move(file)), size_(size), permit_(std::move(permit)) {}
  int64_t size() const override { return size_; }
  absl::StatusOr<int64_t> Read(int64_t offset, char* buffer, int64_t capacity) override {
    const ssize_t got = pread(file_.get(), buffer, static_cast<size_t>(capacity), offset);
    if (got < 0) return absl::ErrnoToStatus(errno, "a plan's file");
    return int64_t{got};
  }

 private:
  const Descriptor file_;
  const int64_t size_;
  const std::unique_ptr<Permits::Permit> permit_;
};

HttpResponse Attachment(const std::string& type, const std::string& file_name) {
  return {200,
          type,
          "",
          {{"Content-Disposition", Cat("attachment; filename=\"", file_name, "\"")},
           {"Cache-Control", "no-store"}}};
}

absl::StatusOr<HttpResponse> BlobResponse(Environment& env, const Caller& caller,
                                          const std::string& blob, const std::string& file_name) {
  MENDEL_ASSIGN_OR_RETURN(const BlobId id, ParseBlobName(blob));
  MENDEL_ASSIGN_OR_RETURN(auto permit, env.transfers.Take(caller.name));
  MENDEL_ASSIGN_OR_RETURN(auto reader, env.blobs.OpenBlob(id));
  HttpResponse response = Attachment("application/octet-stream", file_name);
  response.stream = std::make_shared<BlobBody>(std::move(reader), std::move(permit), env.metrics);
  return response;
}

/// Fixed notation, two decimals at most.
std::string Short(double value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.2f", value);
  return text;
}

std::string ProgressText(const v1::Progress& progress) {
  std::string text = progress.phase();
  if (!progress.detail().empty()) text += Cat(": ", progress.detail());
  if (progress.candidates() > 0) text += Cat(", ", progress.candidates(), " candidates");
  if (progress.candidates_per_second() > 0)
    text += Cat(", ", Short(progress.candidates_per_second()), " a second");
  if (progress.best_speedup() > 0) text += Cat(", best ", Short(progress.best_speedup()), "x");
  if (progress.has_time_left()) text += Cat(", ", progress.time_left().seconds(), " s left");
  return text;
}

absl::StatusOr<std::string> LogText(Environment& env, const std::string& job) {
  std::string text;
  for (int64_t after = 0; text.size() < kLongestLog;) {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<v1::JobEvent> events,
                            env.jobs.Events(job, after, kEventsAtOnce));
    if (events.empty()) return text;
    for (const v1::JobEvent& event : events) text += EventLine(event) + "\n";
    after = events.back().sequence();
  }
  return text + "(the rest is left out)\n";
}

absl::StatusOr<HttpResponse> FileResponse(Environment& env, const Caller& caller,
                                          const std::string& path, const std::string& file_name) {
  MENDEL_ASSIGN_OR_RETURN(auto permit, env.transfers.Take(caller.name));
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0)
    return absl::UnavailableError("the file has just been deleted: try again");
  HttpResponse response = Attachment("application/octet-stream", file_name);
  response.stream = std::make_shared<FileBody>(std::move(file), info.st_size, std::move(permit));
  return response;
}

}  // namespace

absl::StatusOr<HttpResponse> PlanDownload(Environment& env, const Caller& caller, PlanFiles& files,
                                          const std::string& plan, const std::string& what) {
  v1::GetPlanRequest request;
  request.set_name(plan);
  v1::Plan found;
  MENDEL_RETURN_IF_ERROR(handlers::GetPlan(env, caller, request, found));
  const std::string name = Cat("mendel-", plan.substr(plan.rfind('/') + 1, 8), ".", what);
  if (what == "plan") return BlobResponse(env, caller, found.blob(), name);
  if (what != "onnx" && what != "html") return absl::NotFoundError("a plan has no such file");
  const auto kind = what == "onnx" ? PlanFiles::Kind::kOnnx : PlanFiles::Kind::kReport;
  MENDEL_ASSIGN_OR_RETURN(const std::optional<std::string> path, files.Get(found, kind));
  if (path) return FileResponse(env, caller, *path, name);
  return HttpResponse{202,
                      "application/json; charset=utf-8",
                      "{\"state\":\"working\"}",
                      {{"Cache-Control", "no-store"}, {"Retry-After", "1"}}};
}

std::string EventLine(const v1::JobEvent& event) {
  std::string text =
      Cat(google::protobuf::util::TimeUtil::ToString(event.time()), "  ", event.sequence(), "  ");
  if (event.has_progress()) {
    text += Cat("progress  ", ProgressText(event.progress()));
  } else if (event.event_case() == v1::JobEvent::kState) {
    text += Cat("state     ", v1::JobState_Name(event.state()));
  } else {
    text += Cat("warning   ", event.warning());
  }
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return c < ' ' || static_cast<unsigned char>(c) > 126; }, '?');
  return text;
}

absl::StatusOr<HttpResponse> DownloadOf(Environment& env, const Caller& caller,
                                        const std::string& job, const std::string& what) {
  v1::GetJobRequest request;
  request.set_name(job);
  v1::Job found;
  MENDEL_RETURN_IF_ERROR(handlers::GetJob(env, caller, request, found));
  const std::string name = Cat("mendel-", job.substr(job.rfind('/') + 1, 8));
  if (what == "plan" && !found.plan().empty()) {
    MENDEL_ASSIGN_OR_RETURN(const v1::Plan plan, env.jobs.GetPlan(found.plan()));
    return BlobResponse(env, caller, plan.blob(), name + ".plan");
  }
  if (what == "bundle" && !found.bundle().empty())
    return BlobResponse(env, caller, found.bundle(), name + ".tar");
  if (what == "log") {
    HttpResponse response = Attachment("text/plain; charset=utf-8", name + ".log");
    MENDEL_ASSIGN_OR_RETURN(response.body, LogText(env, job));
    return response;
  }
  if (what == "report" && !found.verdict().json().empty()) {
    HttpResponse response = Attachment("application/json; charset=utf-8", name + ".json");
    response.body = found.verdict().json();
    return response;
  }
  return absl::NotFoundError("the job has no such file");
}

}  // namespace mendel::server
