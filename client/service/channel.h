// One connection to a server, without gRPC's types: the interface of the client's logic (upload.h,
// download.h, service_client.h) and of its tests. Nothing here retries.
#ifndef MENDEL_CLIENT_SERVICE_CHANNEL_H_
#define MENDEL_CLIENT_SERVICE_CHANNEL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/service/service_options.h"
#include "google/bytestream/bytestream.pb.h"
#include "google/longrunning/operations.pb.h"
#include "grpc/health/v1/health.pb.h"
#include "mendel/v1/jobs.pb.h"
#include "mendel/v1/models.pb.h"
#include "mendel/v1/plans.pb.h"

namespace mendel {

/// The end of a call.
struct CallStatus {
  absl::Status status;
  /// Seconds to wait before the next attempt, on the server's request (google.rpc.RetryInfo).
  /// nullopt: the server requests no wait.
  std::optional<double> retry_after;
  bool ok() const { return status.ok(); }
};

class Channel {
 public:
  virtual ~Channel() = default;

  /// Unary calls, one per RPC, distinguished by the request. They block, at most
  /// ServiceOptions::call_seconds.
  virtual CallStatus Call(const v1::FindMissingBlobsRequest& request,
                          v1::FindMissingBlobsResponse& response) = 0;
  virtual CallStatus Call(const v1::CreateModelRequest& request, v1::Model& response) = 0;
  virtual CallStatus Call(const v1::SubmitJobRequest& request,
                          google::longrunning::Operation& response) = 0;
  virtual CallStatus Call(const v1::GetJobRequest& request, v1::Job& response) = 0;
  virtual CallStatus Call(const v1::ListJobsRequest& request, v1::ListJobsResponse& response) = 0;
  virtual CallStatus Call(const v1::CancelJobRequest& request, v1::Job& response) = 0;
  virtual CallStatus Call(const v1::GetPlanRequest& request, v1::Plan& response) = 0;
  virtual CallStatus Call(const v1::ListPlansRequest& request, v1::ListPlansResponse& response) = 0;
  virtual CallStatus Call(const google::bytestream::QueryWriteStatusRequest& request,
                          google::bytestream::QueryWriteStatusResponse& response) = 0;
  virtual CallStatus Call(const grpc::health::v1::HealthCheckRequest& request,
                          grpc::health::v1::HealthCheckResponse& response) = 0;

  /// Streams have no deadline; keep-alive pings detect a dead connection. Write sends each message
  /// that `next` fills until it returns false, or the server has answered.
  using NextRequest = std::function<bool(google::bytestream::WriteRequest& request)>;
  virtual CallStatus Write(const NextRequest& next,
                           google::bytestream::WriteResponse& response) = 0;
  /// Passes every message to `on_data`, whose error ends the call and is its result.
  using OnData = std::function<absl::Status(std::string_view data)>;
  virtual CallStatus Read(const google::bytestream::ReadRequest& request,
                          const OnData& on_data) = 0;
  using OnEvent = std::function<void(const v1::JobEvent& event)>;
  virtual CallStatus Watch(const v1::WatchJobRequest& request, const OnEvent& on_event) = 0;
};

/// Opens no connection yet. InvalidArgument or NotFound for files that cannot be read;
/// InvalidArgument for a token that would travel unencrypted to another machine.
absl::StatusOr<std::unique_ptr<Channel>> OpenChannel(const ServiceOptions& options);

}  // namespace mendel

#endif  // MENDEL_CLIENT_SERVICE_CHANNEL_H_
