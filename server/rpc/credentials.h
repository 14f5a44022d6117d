// Credentials of the server's addresses.
#ifndef MENDEL_SERVER_RPC_CREDENTIALS_H_
#define MENDEL_SERVER_RPC_CREDENTIALS_H_

#include <memory>
#include <string>

#include "server/options.h"

namespace grpc {
class ServerCredentials;
}

namespace mendel::server {

/// TLS, mutual TLS, or none: unix sockets are never encrypted. Certificate files are read again
/// when they change.
std::shared_ptr<grpc::ServerCredentials> MakeCredentials(const ServerOptions& options,
                                                         const std::string& address);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_CREDENTIALS_H_
