// One line a unary RPC: MENDEL_UNARY(Method, Request, Response) within a callback service , with MENDEL_SERVICE its full name; its
// `env_` is the Environment and the handler has the RPC's name. Included by the services' own files only.
#ifndef MENDEL_SERVER_RPC_UNARY_H_
#define MENDEL_SERVER_RPC_UNARY_H_

#include "server/rpc/call.h"
#include "server/rpc/handlers.h"

#define MENDEL_UNARY(METHOD, REQUEST, RESPONSE)                                                                                 \
  grpc::ServerUnaryReactor* METHOD(grpc::CallbackServerContext* context, const REQUEST* request, RESPONSE* response) override { \
    return RunUnary(env_, context, "/" MENDEL_SERVICE "/" #METHOD,                                                              \
                    [=, this](const Caller& caller) { return handlers::METHOD(env_, caller, *request, *response); });           \
  }

#endif  // MENDEL_SERVER_RPC_UNARY_H_
