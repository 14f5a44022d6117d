#include "client/service/fake_channel.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/hash.h"
#include "base/status.h"

namespace mendel {
namespace {

namespace fs = std::filesystem;
namespace bytestream = google::bytestream;

int64_t SizeOf(const std::string& path) {
  return fs::exists(path) ? static_cast<int64_t>(fs::file_size(path)) : 0;
}

class FakeChannel final : public Channel {
 public:
  explicit FakeChannel(FakeServer& server) : server_(server) {}

  CallStatus Call(const v1::FindMissingBlobsRequest& request,
                  v1::FindMissingBlobsResponse& response) override {
    for (const v1::Digest& digest : request.digests()) {
      if (!fs::exists(server_.BlobPath(digest.sha256()))) *response.add_missing() = digest;
    }
    return Fault("FindMissingBlobs");
  }

  CallStatus Call(const v1::CreateModelRequest& request, v1::Model& response) override {
    std::string text;
    for (const v1::ModelFile& file : request.files()) {
      if (!fs::exists(server_.BlobPath(file.digest().sha256())))
        return {absl::FailedPreconditionError("missing blob"), {}};
      text += Cat(file.path(), " ", file.digest().sha256(), "\n");
    }
    *response.mutable_files() = request.files();
    response.set_name("models/" + Sha256Hex(text));
    return Fault("CreateModel");
  }

  CallStatus Call(const v1::SubmitJobRequest& request,
                  google::longrunning::Operation& response) override {
    // The job exists even when the answer is lost.
    auto [known, added] =
        server_.request_ids.emplace(request.request_id(), Cat("jobs/", server_.request_ids.size()));
    if (added) server_.jobs[known->second].set_name(known->second);
    response.set_name(known->second);
    return Fault("SubmitJob");
  }

  CallStatus Call(const v1::GetJobRequest& request, v1::Job& response) override {
    return Find(server_.jobs, "GetJob", request.name(), response);
  }
  CallStatus Call(const v1::CancelJobRequest& request, v1::Job& response) override {
    return Find(server_.jobs, "CancelJob", request.name(), response);
  }
  CallStatus Call(const v1::GetPlanRequest& request, v1::Plan& response) override {
    return Find(server_.plans, "GetPlan", request.name(), response);
  }

  CallStatus Call(const v1::ListJobsRequest& request, v1::ListJobsResponse& response) override {
    size_t start = request.page_token().empty() ? 0 : std::stoul(request.page_token());
    size_t position = 0;
    for (const auto& [name, job] : server_.jobs) {
      if (position++ < start) continue;
      if (response.jobs_size() == request.page_size()) {
        response.set_next_page_token(std::to_string(position - 1));
        break;
      }
      *response.add_jobs() = job;
    }
    return Fault("ListJobs");
  }

  CallStatus Call(const v1::ListPlansRequest& request, v1::ListPlansResponse& response) override {
    for (const auto& [name, plan] : server_.plans) {
      if (request.model().empty() || plan.model() == request.model()) *response.add_plans() = plan;
    }
    return Fault("ListPlans");
  }

  CallStatus Call(const bytestream::QueryWriteStatusRequest& request,
                  bytestream::QueryWriteStatusResponse& response) override {
    CallStatus fault = Fault("QueryWriteStatus");
    if (!fault.ok()) return fault;
    const std::string sha256 = ShaOf(request.resource_name());
    response.set_complete(fs::exists(server_.BlobPath(sha256)));
    const std::string path =
        response.complete() ? server_.BlobPath(sha256) : UploadPath(request.resource_name());
    if (!fs::exists(path)) return {absl::NotFoundError("no such upload"), {}};
    response.set_committed_size(SizeOf(path));
    return {};
  }

  CallStatus Call(const grpc::health::v1::HealthCheckRequest&,
                  grpc::health::v1::HealthCheckResponse& response) override {
    response.set_status(grpc::health::v1::HealthCheckResponse::SERVING);
    return Fault("Check");
  }

  CallStatus Write(const NextRequest& next, bytestream::WriteResponse& response) override {
    CallStatus fault = Fault("Write");
    if (!fault.ok()) return fault;
    bytestream::WriteRequest request;
    std::string name;
    for (int64_t done = 0; next(request); request.Clear()) {
      if (name.empty()) name = request.resource_name();
      if (request.write_offset() != SizeOf(UploadPath(name)))
        return {absl::OutOfRangeError("another offset"), {}};
      std::ofstream(UploadPath(name), std::ios::binary | std::ios::app) << request.data();
      done += static_cast<int64_t>(request.data().size());
      server_.received += static_cast<int64_t>(request.data().size());
      response.set_committed_size(SizeOf(UploadPath(name)));
      if (request.finish_write()) {
        if (Sha256Hex(ReadAll(UploadPath(name))) != ShaOf(name))
          return {absl::DataLossError("hash"), {}};
        fs::rename(UploadPath(name), server_.BlobPath(ShaOf(name)));
        return {};
      }
      if (server_.stream_fault) fault = server_.stream_fault("Write", done);
      if (!fault.ok()) return fault;
    }
    return {};
  }

  CallStatus Read(const bytestream::ReadRequest& request, const OnData& on_data) override {
    CallStatus fault = Fault("Read");
    if (!fault.ok()) return fault;
    const std::string bytes = ReadAll(server_.BlobPath(request.resource_name().substr(6, 64)));
    int64_t done = 0;
    for (size_t offset = static_cast<size_t>(request.read_offset()); offset < bytes.size();
         offset += 4096) {
      const std::string piece = bytes.substr(offset, 4096);
      const absl::Status taken = on_data(piece);
      if (!taken.ok()) return {taken, {}};
      done += static_cast<int64_t>(piece.size());
      server_.sent += static_cast<int64_t>(piece.size());
      if (server_.stream_fault) fault = server_.stream_fault("Read", done);
      if (!fault.ok()) return fault;
    }
    return {};
  }

  CallStatus Watch(const v1::WatchJobRequest& request, const OnEvent& on_event) override {
    CallStatus fault = Fault("Watch");
    int64_t done = 0;
    for (const v1::JobEvent& event : server_.events[request.name()]) {
      if (!fault.ok()) return fault;
      if (event.sequence() <= request.after_sequence()) continue;
      on_event(event);
      if (server_.stream_fault) fault = server_.stream_fault("Watch", ++done);
    }
    return fault;
  }

 private:
  static std::string ShaOf(const std::string& upload) {
    return upload.substr(upload.find("/blobs/") + 7, 64);
  }
  std::string UploadPath(const std::string& upload) const {
    return server_.folder + "/upload-" + upload.substr(8, 36);
  }

  CallStatus Fault(const std::string& call) {
    return server_.fault ? server_.fault(call) : CallStatus{};
  }

  template <class T>
  CallStatus Find(const std::map<std::string, T>& known, const std::string& call,
                  const std::string& name, T& response) {
    const auto found = known.find(name);
    if (found == known.end()) return {absl::NotFoundError(name), {}};
    response = found->second;
    return Fault(call);
  }

  FakeServer& server_;
};

}  // namespace

std::string FakeServer::AddBlob(const std::string& bytes) {
  WriteAll(BlobPath(Sha256Hex(bytes)), bytes);
  return Cat("blobs/", Sha256Hex(bytes), "/", bytes.size());
}

std::unique_ptr<Channel> MakeFakeChannel(FakeServer& server) {
  return std::make_unique<FakeChannel>(server);
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace mendel
