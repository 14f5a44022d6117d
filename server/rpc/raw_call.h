// A call of any method by its path, for tests.
#ifndef MENDEL_SERVER_RPC_RAW_CALL_H_
#define MENDEL_SERVER_RPC_RAW_CALL_H_

#include <grpcpp/channel.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace mendel::server {

/// Calls any method with these bytes as its only message; returns its status and its first answer.
std::pair<grpc::Status, std::string> RawCall(const std::shared_ptr<grpc::Channel>& channel,
                                             const std::string& method, const std::string& token,
                                             const std::string& request, int64_t deadline_ms);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_RAW_CALL_H_
