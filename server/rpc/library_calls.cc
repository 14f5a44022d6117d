#include "server/rpc/library_calls.h"

#include <grpcpp/server_context.h>

namespace mendel::server {

void LibraryCalls::Add(grpc::ServerContextBase& call) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  open_.insert(&call);
  if (closed_) call.TryCancel();
}

void LibraryCalls::Remove(grpc::ServerContextBase& call) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  open_.erase(&call);
}

// gRPC calls back under this lock: a cancelled call's interceptors run, and its destruction waits
// for the lock in Remove. gRPC holds none of its locks then.
void LibraryCalls::CancelAll() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  closed_ = true;
  const std::set<grpc::ServerContextBase*> calls = open_;
  for (grpc::ServerContextBase* call : calls) {
    if (open_.contains(call)) call->TryCancel();
  }
}

}  // namespace mendel::server
