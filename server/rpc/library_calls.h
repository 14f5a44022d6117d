// Open calls of gRPC's own services: a stopping server ends them, since their handlers wait for
// the caller as long as it likes (reflection, the health service's Watch).
#ifndef MENDEL_SERVER_RPC_LIBRARY_CALLS_H_
#define MENDEL_SERVER_RPC_LIBRARY_CALLS_H_

#include <mutex>
#include <set>

namespace grpc {
class ServerContextBase;
}

namespace mendel::server {

/// Thread-safe.
class LibraryCalls {
 public:
  /// A call that begins after CancelAll is cancelled at once.
  void Add(grpc::ServerContextBase& call);
  /// `call` may be unknown.
  void Remove(grpc::ServerContextBase& call);
  /// Cancels the open calls and all later ones.
  void CancelAll();

 private:
  // A cancelled call may end, and be removed, within its cancellation.
  std::recursive_mutex mutex_;
  std::set<grpc::ServerContextBase*> open_;
  bool closed_ = false;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_LIBRARY_CALLS_H_
