// One line a unary RPC: MENDEL_UNARY(Method, Request, Response) within a callback service whose
// full name is its constant kService; its `env_` is the Environment and the handler has the RPC's
// name. Included by the services' own files only.
#ifndef MENDEL_SERVER_RPC_UNARY_H_
#define MENDEL_SERVER_RPC_UNARY_H_

#include <string>
#include <string_view>

#include "base/status.h"
#include "server/rpc/call.h"
#include "server/rpc/handlers.h"

#define MENDEL_UNARY(METHOD, REQUEST, RESPONSE)                                                  \
  grpc::ServerUnaryReactor* METHOD(grpc::CallbackServerContext* context, const REQUEST* request, \
                                   RESPONSE* response) override {                                \
    static const auto* const name = new std::string(Cat("/", kService, "/" #METHOD));            \
    return RunUnary(env_, context, *name, *request,                                              \
                    [=, this](const Caller& caller, const google::protobuf::Message& taken) {    \
                      return handlers::METHOD(env_, caller, static_cast<const REQUEST&>(taken),  \
                                              *response);                                        \
                    });                                                                          \
  }

#endif  // MENDEL_SERVER_RPC_UNARY_H_
