// The services of docs/service.md as gRPC sees them.
#ifndef MENDEL_SERVER_RPC_SERVICES_H_
#define MENDEL_SERVER_RPC_SERVICES_H_

#include <memory>

namespace grpc {
class Service;
}

namespace mendel::server {

struct Environment;

/// Each outlives the gRPC server that it is registered with; `env` outlives them.
std::unique_ptr<grpc::Service> MakeModelsService(Environment& env);
std::unique_ptr<grpc::Service> MakeJobsService(Environment& env);
std::unique_ptr<grpc::Service> MakePlansService(Environment& env);
std::unique_ptr<grpc::Service> MakeVerifierService(Environment& env);
std::unique_ptr<grpc::Service> MakeOperationsService(Environment& env);
std::unique_ptr<grpc::Service> MakeByteStreamService(Environment& env);
std::unique_ptr<grpc::Service> MakeReflectionService();

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_SERVICES_H_
