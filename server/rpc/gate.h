// Checks of roles for gRPC's own services (reflection, channelz, health). Their handlers cannot
// check. A stopping server ends their calls (library_calls.h).
#ifndef MENDEL_SERVER_RPC_GATE_H_
#define MENDEL_SERVER_RPC_GATE_H_

#include <memory>

namespace grpc::experimental {
class ServerInterceptorFactoryInterface;
}

namespace mendel::server {

struct Environment;

/// Interceptors that refuse callers without the role: they drop every message of the answer and set
/// its status. `env` outlives them.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeGate(Environment& env);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_GATE_H_
