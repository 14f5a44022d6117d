// Roles for the services that gRPC's own libraries bring (reflection, channelz), whose handlers
// cannot request them.
#ifndef MENDEL_SERVER_RPC_GATE_H_
#define MENDEL_SERVER_RPC_GATE_H_

#include <memory>

namespace grpc::experimental {
class ServerInterceptorFactoryInterface;
}

namespace mendel::server {

struct Environment;

/// Interceptors that take every message out of the answers to those who may not ask, and set their
/// status. `env` outlives them.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeGate(Environment& env);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_GATE_H_
