// One connection to a server, free of gRPC's types: what the client's logic (upload.h, download.h, service_client.h) is written
// and tested against. Nothing here tries again.
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

/// How a call ended.
struct CallStatus {
  absl::Status status;
  /// Seconds that the server asks the client to wait before it tries again (google.rpc.RetryInfo).
  std::optional<double> retry_after;
  bool ok() const { return status.ok(); }
};

class Channel {
 public:
  virtual ~Channel() = default;

  /// Unary calls, one an RPC, told apart by the request. They block, at most ServiceOptions::call_seconds.
  virtual CallStatus Call(const v1::FindMissingBlobsRequest& request, v1::FindMissingBlobsResponse& response) = 0;
  virtual CallStatus Call(const v1::CreateModelRequest& request, v1::Model& response) = 0;
  virtual CallStatus Call(const v1::SubmitJobRequest& request, google::longrunning::Operation& response) = 0;
  virtual CallStatus Call(const v1::GetJobRequest& request, v1::Job& response) = 0;
  virtual CallStatus Call(const v1::ListJobsRequest& request, v1::ListJobsResponse& response) = 0;
  virtual CallStatus Call(const v1::CancelJobRequest& request, v1::Job& response) = 0;
  virtual CallStatus Call(const v1::GetPlanRequest& request, v1::Plan& response) = 0;
  virtual CallStatus Call(const v1::ListPlansRequest& request, v1::ListPlansResponse& response) = 0;
  virtual CallStatus Call(const google::bytestream::QueryWriteStatusRequest& request,
                          google::bytestream::QueryWriteStatusResponse& response) = 0;
  virtual CallStatus Call(const grpc::health::v1::HealthCheckRequest& request, grpc::health::v1::HealthCheckResponse& response) = 0;

  /// Streams. They have no deadline; keep-alive pings notice a dead connection.
  /// Sends what `next` fills in until it returns false, or the server has answered.
  using NextRequest = std::function<bool(google::bytestream::WriteRequest& request)>;
  virtual CallStatus Write(const NextRequest& next, google::bytestream::WriteResponse& response) = 0;
  /// Hands every message on; an error of `on_data` ends the call and is its result.
  using OnData = std::function<absl::Status(std::string_view data)>;
  virtual CallStatus Read(const google::bytestream::ReadRequest& request, const OnData& on_data) = 0;
  using OnEvent = std::function<void(const v1::JobEvent& event)>;
  virtual CallStatus Watch(const v1::WatchJobRequest& request, const OnEvent& on_event) = 0;
};

/// Opens no connection yet. InvalidArgument or NotFound for files that cannot be read, and for a token that would travel in the
/// clear to another machine.
absl::StatusOr<std::unique_ptr<Channel>> OpenChannel(const ServiceOptions& options);

}  // namespace mendel

#endif  // MENDEL_CLIENT_SERVICE_CHANNEL_H_
