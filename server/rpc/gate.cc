#include "server/rpc/gate.h"

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_interceptor.h>

#include <string>

#include "server/rpc/call.h"

namespace mendel::server {
namespace {

using grpc::experimental::InterceptionHookPoints;

class Gate final : public grpc::experimental::Interceptor {
 public:
  Gate(Environment& env, grpc::experimental::ServerRpcInfo& info, bool is_open)
      : env_(env), info_(info), is_open_(is_open) {}
  ~Gate() override { env_.library_calls.Remove(*info_.server_context()); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      verdict_ = is_open_ ? absl::OkStatus()
                          : Admit(env_, *info_.server_context(), info_.method()).status();
      env_.library_calls.Add(*info_.server_context());
    }
    if (!verdict_.ok() &&
        methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      methods->GetSerializedSendMessage()->Clear();
    }
    if (!verdict_.ok() &&
        methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      methods->ModifySendStatus(EndCall(env_, info_.method(), verdict_));
    }
    methods->Proceed();
  }

 private:
  Environment& env_;
  grpc::experimental::ServerRpcInfo& info_;
  const bool is_open_;
  absl::Status verdict_ = absl::PermissionDeniedError("not requested");
};

class GateFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit GateFactory(Environment& env) : env_(env) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    const MethodRole* row = FindMethod(info->method());
    // Methods that the table lacks have no handlers here either; should a library bring a new one,
    // it is closed.
    const bool own_or_open = row != nullptr && !row->debug;
    const bool own = own_or_open && !row->method.starts_with("/grpc.");
    return own ? nullptr : new Gate(env_, *info, own_or_open);
  }

 private:
  Environment& env_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeGate(Environment& env) {
  return std::make_unique<GateFactory>(env);
}

}  // namespace mendel::server
