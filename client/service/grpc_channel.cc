// The only file of the client that knows gRPC.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/status.h"
#include "client/service/channel.h"
#include "google/bytestream/bytestream.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "mendel/v1/jobs.grpc.pb.h"
#include "mendel/v1/models.grpc.pb.h"
#include "mendel/v1/plans.grpc.pb.h"

namespace mendel {
namespace {

namespace bytestream = google::bytestream;

/// Code and message as they are; RetryInfo, and the fields that a BadRequest names, from the
/// details.
CallStatus Convert(const grpc::Status& status) {
  if (status.ok()) return {};
  CallStatus result;
  std::string message = status.error_message();
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& any : details.details()) {
      google::rpc::RetryInfo retry;
      google::rpc::BadRequest bad;
      if (any.Is<google::rpc::RetryInfo>() && any.UnpackTo(&retry)) {
        result.retry_after =
            static_cast<double>(retry.retry_delay().seconds()) + 1e-9 * retry.retry_delay().nanos();
      } else if (any.Is<google::rpc::BadRequest>() && any.UnpackTo(&bad)) {
        for (const auto& violation : bad.field_violations()) {
          if (message.find(violation.description()) == std::string::npos) {
            message += Cat("; ", violation.field(), ": ", violation.description());
          }
        }
      }
    }
  }
  result.status = absl::Status(static_cast<absl::StatusCode>(status.error_code()), message);
  return result;
}

/// A new trace, under which the server's log and its spans have this program's calls.
std::string NewTraceParent() {
  const auto [high, low] = FreshEntropy();
  return absl::StrFormat("00-%016x%016x-%016x-01", high, low | 1, FreshEntropy()[0] | 1);
}

/// The variable TRACEPARENT, or a new trace; gRPC would refuse metadata with control characters.
std::string TraceParent() {
  const char* value = std::getenv("TRACEPARENT");
  if (value == nullptr || *value == '\0') return NewTraceParent();
  const std::string text = value == nullptr ? "" : value;
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
  return printable ? text : "";
}

class GrpcChannel final : public Channel {
 public:
  GrpcChannel(const std::shared_ptr<grpc::Channel>& channel, std::string authorization,
              double call_seconds)
      : authorization_(std::move(authorization)),
        call_seconds_(call_seconds),
        models_(v1::Models::NewStub(channel)),
        jobs_(v1::Jobs::NewStub(channel)),
        plans_(v1::Plans::NewStub(channel)),
        bytes_(bytestream::ByteStream::NewStub(channel)),
        health_(grpc::health::v1::Health::NewStub(channel)) {}

  CallStatus Call(const v1::FindMissingBlobsRequest& request,
                  v1::FindMissingBlobsResponse& response) override {
    return Unary(
        [&](auto& context) { return models_->FindMissingBlobs(&context, request, &response); });
  }
  CallStatus Call(const v1::CreateModelRequest& request, v1::Model& response) override {
    return Unary([&](auto& context) { return models_->CreateModel(&context, request, &response); });
  }
  CallStatus Call(const v1::SubmitJobRequest& request,
                  google::longrunning::Operation& response) override {
    return Unary([&](auto& context) { return jobs_->SubmitJob(&context, request, &response); });
  }
  CallStatus Call(const v1::GetJobRequest& request, v1::Job& response) override {
    return Unary([&](auto& context) { return jobs_->GetJob(&context, request, &response); });
  }
  CallStatus Call(const v1::ListJobsRequest& request, v1::ListJobsResponse& response) override {
    return Unary([&](auto& context) { return jobs_->ListJobs(&context, request, &response); });
  }
  CallStatus Call(const v1::CancelJobRequest& request, v1::Job& response) override {
    return Unary([&](auto& context) { return jobs_->CancelJob(&context, request, &response); });
  }
  CallStatus Call(const v1::GetPlanRequest& request, v1::Plan& response) override {
    return Unary([&](auto& context) { return plans_->GetPlan(&context, request, &response); });
  }
  CallStatus Call(const v1::ListPlansRequest& request, v1::ListPlansResponse& response) override {
    return Unary([&](auto& context) { return plans_->ListPlans(&context, request, &response); });
  }
  CallStatus Call(const bytestream::QueryWriteStatusRequest& request,
                  bytestream::QueryWriteStatusResponse& response) override {
    return Unary(
        [&](auto& context) { return bytes_->QueryWriteStatus(&context, request, &response); });
  }
  CallStatus Call(const grpc::health::v1::HealthCheckRequest& request,
                  grpc::health::v1::HealthCheckResponse& response) override {
    return Unary([&](auto& context) { return health_->Check(&context, request, &response); });
  }

  CallStatus Write(const NextRequest& next, bytestream::WriteResponse& response) override {
    grpc::ClientContext context;
    Prepare(context);
    const auto writer = bytes_->Write(&context, &response);
    bytestream::WriteRequest request;
    while (next(request)) {
      if (!writer->Write(request)) break;
      request.Clear();
    }
    writer->WritesDone();
    return Convert(writer->Finish());
  }

  CallStatus Read(const bytestream::ReadRequest& request, const OnData& on_data) override {
    grpc::ClientContext context;
    Prepare(context);
    const auto reader = bytes_->Read(&context, request);
    absl::Status refused;
    bytestream::ReadResponse response;
    while (refused.ok() && reader->Read(&response)) refused = on_data(response.data());
    if (!refused.ok()) context.TryCancel();
    const grpc::Status status = reader->Finish();
    return refused.ok() ? Convert(status) : CallStatus{refused, {}};
  }

  CallStatus Watch(const v1::WatchJobRequest& request, const OnEvent& on_event) override {
    grpc::ClientContext context;
    Prepare(context);
    const auto reader = jobs_->WatchJob(&context, request);
    v1::JobEvent event;
    while (reader->Read(&event)) on_event(event);
    return Convert(reader->Finish());
  }

 private:
  void Prepare(grpc::ClientContext& context) const {
    if (!authorization_.empty()) context.AddMetadata("authorization", authorization_);
    if (!trace_parent_.empty()) context.AddMetadata("traceparent", trace_parent_);
  }
  template <class Function>
  CallStatus Unary(const Function& function) const {
    grpc::ClientContext context;
    Prepare(context);
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(static_cast<int64_t>(call_seconds_ * 1000)));
    return Convert(function(context));
  }

  std::string authorization_;
  /// W3C trace context of the program that started this one.
  const std::string trace_parent_ = TraceParent();
  double call_seconds_;
  std::unique_ptr<v1::Models::Stub> models_;
  std::unique_ptr<v1::Jobs::Stub> jobs_;
  std::unique_ptr<v1::Plans::Stub> plans_;
  std::unique_ptr<bytestream::ByteStream::Stub> bytes_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

absl::StatusOr<std::string> ReadText(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::ErrnoToStatus(errno, Cat("cannot read ", path));
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

bool IsThisMachine(const std::string& address) {
  for (const char* prefix : {"unix:", "unix-abstract:", "localhost:", "127.", "[::1]",
                             "dns:///localhost:", "ipv4:127.", "ipv6:[::1]"}) {
    if (address.rfind(prefix, 0) == 0) return true;
  }
  return address == "localhost";
}

absl::StatusOr<std::string> Authorization(const ServiceOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(std::string token, ReadText(options.token_file));
  if (options.token_file.empty()) token = options.token;
  token = token.substr(0, token.find_first_of("\r\n"));
  if (token.empty())
    return options.token_file.empty() ? absl::StatusOr<std::string>("")
                                      : InvalidInput(options.token_file, " contains no token");
  if (!options.use_ssl && !IsThisMachine(options.address)) {
    return InvalidInput("a token for ", options.address,
                        " needs TLS: without it everybody on the way could read it");
  }
  return Cat("Bearer ", token);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(
    const ServiceOptions& options) {
  if (!options.use_ssl) {
    if (!options.root_certifications_file.empty() || !options.private_key_file.empty() ||
        !options.certificate_chain_file.empty()) {
      return InvalidInput("certificates are of no use without TLS");
    }
    return grpc::InsecureChannelCredentials();
  }
  if (options.private_key_file.empty() != options.certificate_chain_file.empty()) {
    return InvalidInput("mutual TLS takes a private key and a certificate chain");
  }
  grpc::SslCredentialsOptions ssl;
  MENDEL_ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadText(options.root_certifications_file));
  MENDEL_ASSIGN_OR_RETURN(ssl.pem_private_key, ReadText(options.private_key_file));
  MENDEL_ASSIGN_OR_RETURN(ssl.pem_cert_chain, ReadText(options.certificate_chain_file));
  return grpc::SslCredentials(ssl);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Channel>> OpenChannel(const ServiceOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(std::string authorization, Authorization(options));
  MENDEL_ASSIGN_OR_RETURN(const auto credentials, Credentials(options));
  grpc::ChannelArguments arguments;
  // Attempts are counted in one place (retry.h); a connection that died without a word is noticed
  // within a minute and a half.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  arguments.SetMaxReceiveMessageSize(16 << 20);
  const auto channel = grpc::CreateCustomChannel(options.address, credentials, arguments);
  return std::make_unique<GrpcChannel>(channel, std::move(authorization), options.call_seconds);
}

}  // namespace mendel
