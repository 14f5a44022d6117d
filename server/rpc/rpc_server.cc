#include "server/rpc/rpc_server.h"

#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_interceptor.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <mutex>
#include <utility>

#include "base/status.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/credentials.h"
#include "server/rpc/gate.h"
#include "server/rpc/services.h"

namespace mendel::server {
namespace {

/// Services with a health status of their own, in addition to the whole server's ("").
constexpr std::array kServices = {"mendel.v1.Models",
                                  "mendel.v1.Jobs",
                                  "mendel.v1.Plans",
                                  "mendel.v1.Verifier",
                                  "google.longrunning.Operations",
                                  "google.bytestream.ByteStream"};

constexpr std::string_view kTransfers = "google.bytestream.ByteStream";

/// Seconds within which a probed connection must answer.
constexpr int64_t kMostAnswerSeconds = 20;

/// gRPC's plug-ins are enabled for the process, not for a server.
void SwitchOnPlugins() {
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::channelz::experimental::InitChannelzService();
  });
}

void SetLimits(const ServerOptions& options, grpc::ServerBuilder& builder) {
  const auto seconds = [](int64_t count) { return static_cast<int>(count * 1000); };
  grpc::ResourceQuota quota("mendel");
  quota.Resize(static_cast<size_t>(options.rpc_memory_bytes));
  builder.SetResourceQuota(quota);
  // gRPC's own refusal has no details; calls up to twice the limit are refused with them (call.cc).
  builder.SetMaxReceiveMessageSize(static_cast<int>(
      std::min<int64_t>(options.max_message_bytes, std::numeric_limits<int>::max() / 2) * 2));
  builder.SetMaxSendMessageSize(static_cast<int>(options.max_message_bytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                             static_cast<int>(options.max_metadata_bytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             static_cast<int>(options.max_streams_per_connection));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, seconds(options.keepalive_seconds));
  builder.AddChannelArgument(
      GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
      seconds(std::min<int64_t>(options.keepalive_seconds, kMostAnswerSeconds)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             seconds(options.handshake_seconds));
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

/// Passes connections of an address to the server under construction.
std::function<void(int)> TakerOf(grpc::ServerBuilder& builder, const std::string& address,
                                 const ServerOptions& options) {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  const std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor =
      builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD,
                                                           MakeCredentials(options, address));
  return [acceptor](int descriptor) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = descriptor;
    acceptor->HandleNewConnection(&connection);
  };
}

class Server final : public RpcServer {
 public:
  explicit Server(Environment& env) : env_(env) {
    for (auto* make : {&MakeModelsService, &MakeJobsService, &MakePlansService,
                       &MakeVerifierService, &MakeOperationsService, &MakeByteStreamService}) {
      services_.push_back(make(env));
    }
    services_.push_back(MakeReflectionService());
  }
  ~Server() override { Stop(0); }

  absl::Status Start() {
    SwitchOnPlugins();
    MENDEL_RETURN_IF_ERROR(CheckCertificates(env_.options));
    grpc::ServerBuilder builder;
    SetLimits(env_.options, builder);
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> gates;
    gates.push_back(MakeGate(env_));
    builder.experimental().SetInterceptorCreators(std::move(gates));
    const std::vector<std::string> addresses = ListenAddresses(env_.options);
    std::vector<AcceptorAddress> listening;
    for (const std::string& address : addresses)
      listening.push_back({address, TakerOf(builder, address, env_.options)});
    for (const auto& service : services_) builder.RegisterService(service.get());
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return absl::UnavailableError("gRPC's server cannot be started");
    for (const char* name : kServices)
      server_->GetHealthCheckService()->SetServingStatus(name, true);
    const auto refused = [this] { env_.metrics.Add("mendel_connections_refused_total", {}); };
    const AcceptorLimits limits{env_.options.max_connections,
                                env_.options.max_connections_per_address};
    MENDEL_ASSIGN_OR_RETURN(acceptor_, StartAcceptor(std::move(listening), limits, refused));
    return absl::OkStatus();
  }

  const std::vector<int>& ports() const override { return acceptor_->ports(); }

  void SetHealth(bool jobs, bool uploads) override {
    // gRPC keeps NOT_SERVING once the server drains.
    grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
    health->SetServingStatus(jobs);
    for (const std::string_view name : kServices)
      health->SetServingStatus(std::string(name), jobs && (uploads || name != kTransfers));
  }

  void BeginDrain() override {
    env_.draining = true;
    if (server_ != nullptr && server_->GetHealthCheckService() != nullptr)
      server_->GetHealthCheckService()->Shutdown();
    env_.hub.PokeAll();
  }

  void Stop(int64_t timeout_micros) override {
    if (server_ == nullptr) return;
    BeginDrain();
    if (acceptor_ != nullptr) acceptor_->Stop();
    env_.library_calls.CancelAll();
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::microseconds(timeout_micros));
    server_->Wait();
    server_.reset();
  }

  std::shared_ptr<grpc::Channel> InProcessChannel() override {
    return server_->InProcessChannel(grpc::ChannelArguments());
  }

 private:
  Environment& env_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> StartRpcServer(Environment& env) {
  auto server = std::make_unique<Server>(env);
  MENDEL_RETURN_IF_ERROR(server->Start());
  return std::unique_ptr<RpcServer>(std::move(server));
}

}  // namespace mendel::server
