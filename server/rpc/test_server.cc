#include "server/rpc/test_server.h"

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/hash.h"
#include "base/status.h"
#include "google/bytestream/bytestream.grpc.pb.h"
#include "google/longrunning/operations.pb.h"
#include "server/rpc/handlers.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

std::string NewFolder() {
  std::string pattern = std::filesystem::temp_directory_path() / "mendel-rpc-XXXXXX";
  return mkdtemp(pattern.data()) == nullptr ? "" : pattern;
}

template <class T>
T Must(absl::StatusOr<T> value) {
  EXPECT_TRUE(value.ok()) << value.status();
  return *std::move(value);
}

}  // namespace

TestServer::TestServer(const std::function<void(ServerOptions&)>& change, const Clock& clock)
    : folder_(NewFolder()), log_(LogLevel::kDebug, SystemClock(), [this](const std::string& line) {
        const std::lock_guard<std::mutex> lock(mutex_);
        log_text_ += line + "\n";
      }) {
  options_.listen = Cat("unix:", folder_, "/socket");
  if (change) change(options_);
  jobs_ = Must(OpenSqliteStore(folder_ + "/mendel.sqlite", SystemClock()));
  blobs_ = Must(
      OpenBlobStore(folder_, {options_.max_blob_bytes, options_.max_store_bytes}, SystemClock()));
  authenticator_ = Must(Authenticator::Create(options_, log_));
  tracer_ = Must(Tracer::Open(options_.trace_file, "test", log_));
  const auto key = [](const v1::JobSpec& spec) {
    return Sha256Hex(std::string_view(spec.SerializeAsString()));
  };
  env_ = std::unique_ptr<Environment>(new Environment{options_, *jobs_, *blobs_, clock, log_,
                                                      metrics_, *authenticator_, *tracer_, key});
  rpc_ = Must(StartRpcServer(*env_));
}

TestServer::~TestServer() {
  rpc_.reset();
  env_.reset();
  std::filesystem::remove_all(folder_);
}

std::string TestServer::log_text() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return log_text_;
}

std::shared_ptr<grpc::Channel> TestServer::channel(bool over_socket) {
  if (!over_socket) return rpc_->InProcessChannel();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(Cat("unix:", folder_, "/socket"),
                                   grpc::InsecureChannelCredentials(), arguments);
}

std::string TestServer::MakeModel(const std::string& bytes, const std::string& project) {
  const BlobId blob{Sha256Hex(std::string_view(bytes)), static_cast<int64_t>(bytes.size()),
                    project};
  const UploadId upload{"01234567-89ab-cdef-0123-456789abcdef", blob};
  if (auto writer = blobs_->OpenUpload(upload, 0); writer.ok()) {
    EXPECT_TRUE((*writer)->Append(bytes).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
  }
  v1::CreateModelRequest request;
  request.add_files()->set_path("model.onnx");
  request.mutable_files(0)->mutable_digest()->set_sha256(blob.sha256);
  request.mutable_files(0)->mutable_digest()->set_size_bytes(blob.size);
  v1::Model model;
  const absl::Status status =
      handlers::CreateModel(*env_, {"admin", Role::kAdmin, "", project}, request, model);
  EXPECT_TRUE(status.ok()) << status;
  return model.name();
}

std::string TestServer::SubmitSearch(const std::string& model, const std::string& request_id) {
  v1::SubmitJobRequest request;
  request.mutable_spec()->mutable_optimize()->set_model(model);
  request.mutable_spec()->mutable_optimize()->set_seed(env_->clock.SteadyMicros());
  request.set_request_id(request_id);
  google::longrunning::Operation operation;
  const Caller admin{"admin", Role::kAdmin, "", ProjectOf(model)};
  const absl::Status status = handlers::SubmitJob(*env_, admin, request, operation);
  EXPECT_TRUE(status.ok()) << status;
  return operation.name();
}

std::string TestServer::WorkOnce(int progress) {
  const std::optional<StoredJob> job =
      Must(jobs_->Claim("worker", SystemClock().WallMicros() + 60'000'000, {}));
  EXPECT_TRUE(job.has_value());
  for (int i = 0; i < progress; ++i) {
    v1::JobEvent event;
    event.mutable_progress()->set_phase("search");
    event.mutable_progress()->set_candidates(i);
    EXPECT_TRUE(jobs_->AppendEvent(job->job.name(), job->fence, event).ok());
  }
  const std::string bytes = Cat("plan of ", job->job.name());
  const BlobId blob{Sha256Hex(std::string_view(bytes)), static_cast<int64_t>(bytes.size()),
                    ProjectOf(job->job.name())};
  auto writer = Must(blobs_->OpenUpload({"11234567-89ab-cdef-0123-456789abcdef", blob}, 0));
  EXPECT_TRUE(writer->Append(bytes).ok() && writer->Finish().ok());
  Outcome outcome;
  outcome.state = v1::JOB_STATE_SUCCEEDED;
  outcome.plan.emplace();
  outcome.plan->set_name(JoinName(blob.project, "plans/" + blob.sha256));
  outcome.plan->set_blob(BlobName(blob));
  outcome.plan->set_size_bytes(blob.size);
  outcome.plan->set_model(job->job.spec().optimize().model());
  outcome.plan->set_job(job->job.name());
  outcome.plan->set_weights("exact");
  const absl::Status status = jobs_->Finish(job->job.name(), job->fence, outcome);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(jobs_->RememberPlan(env_->work_key(job->job.spec()), outcome.plan->name()).ok());
  return outcome.plan->name();
}

std::string AuthLine(const std::string& name, const std::string& roles) {
  return Cat(name, " ", roles, " sha256:", Sha256Hex(std::string_view("TOKEN-" + name)), "\n");
}

void Prepare(grpc::ClientContext& context, const std::string& token) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
}

std::string ReadBlob(const std::shared_ptr<grpc::Channel>& channel, const std::string& name,
                     int64_t offset, int64_t limit) {
  const auto stub = google::bytestream::ByteStream::NewStub(channel);
  grpc::ClientContext context;
  Prepare(context);
  google::bytestream::ReadRequest request;
  request.set_resource_name(name);
  request.set_read_offset(offset);
  request.set_read_limit(limit);
  auto stream = stub->Read(&context, request);
  google::bytestream::ReadResponse chunk;
  std::string bytes;
  while (stream->Read(&chunk)) bytes += chunk.data();
  const grpc::Status status = stream->Finish();
  return status.ok() ? bytes : Cat("error ", static_cast<int>(status.error_code()));
}

}  // namespace mendel::server
