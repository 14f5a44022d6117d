// A server over real stores in a folder of its own, with no workers, for tests.
#ifndef MENDEL_SERVER_RPC_TEST_SERVER_H_
#define MENDEL_SERVER_RPC_TEST_SERVER_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "mendel/v1/jobs.pb.h"
#include "server/clock.h"
#include "server/options.h"
#include "server/rpc/environment.h"
#include "server/rpc/rpc_server.h"

namespace mendel::server {

/// Listens on a unix socket in the folder. Fails the test when something cannot be created.
class TestServer {
 public:
  /// `change` may change the options before the start; calls use `clock`.
  explicit TestServer(const std::function<void(ServerOptions&)>& change = {},
                      const Clock& clock = SystemClock());
  ~TestServer();

  const std::string& folder() const { return folder_; }
  Environment& env() { return *env_; }
  RpcServer& rpc() { return *rpc_; }
  /// Lines of the log so far.
  std::string log_text();
  /// In process (the default), or over the unix socket.
  std::shared_ptr<grpc::Channel> channel(bool over_socket = false);

  /// Uploads the bytes as one file and makes a model of it; returns its name.
  std::string MakeModel(const std::string& bytes, const std::string& project = "");
  /// Submits a search over the model; returns its name.
  std::string SubmitSearch(const std::string& model, const std::string& request_id = "");
  /// Acts as a worker: claims the next job, reports `progress` events, and ends it as SUCCEEDED
  /// with a plan. Returns the plan's name.
  std::string WorkOnce(int progress);

 private:
  std::string folder_;
  ServerOptions options_;
  std::mutex mutex_;
  std::string log_text_;
  Logger log_;
  Metrics metrics_;
  std::unique_ptr<JobStore> jobs_;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<Tracer> tracer_;
  std::unique_ptr<Environment> env_;
  std::unique_ptr<RpcServer> rpc_;
};

/// A token "TOKEN-<name>" in the auth file's form: "<name> <roles> sha256:...".
std::string AuthLine(const std::string& name, const std::string& roles);

/// Sets a deadline of twenty seconds and, unless empty, the token.
void Prepare(grpc::ClientContext& context, const std::string& token = "");

/// Reads `limit` bytes of the blob from `offset`, all where it is 0; "error CODE" where the server
/// refuses.
std::string ReadBlob(const std::shared_ptr<grpc::Channel>& channel, const std::string& name,
                     int64_t offset, int64_t limit);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_TEST_SERVER_H_
