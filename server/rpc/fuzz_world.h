// The service without gRPC, for the fuzzer of its requests: real stores in a folder of their own, a
// worker's actions, and the checks after every call.
#ifndef MENDEL_SERVER_RPC_FUZZ_WORLD_H_
#define MENDEL_SERVER_RPC_FUZZ_WORLD_H_

#include <google/protobuf/wrappers.pb.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/rpc/handlers.h"
#include "server/rpc/transfer.h"

namespace mendel::server {

/// Contents of the files that the calls use.
inline constexpr std::array<const char*, 4> kFuzzContents = {"", "m", "a model", "another one"};
BlobId BlobOf(std::string_view bytes);

/// One thread. CHECKs that a call neither fails with INTERNAL nor reports a path.
class World {
 public:
  World();
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Environment& env() { return env_; }
  Principal principal;

  /// The principal as a caller of a method in the request's project, or none; brings names to their
  /// spelling.
  std::optional<Caller> Enter(std::string_view method, google::protobuf::Message& request);
  /// CHECKs what must be true of every answer's status.
  void CheckStatus(const absl::Status& status);
  /// Stores texts of an answer for later calls, as "$0", "$1" and so on.
  void Learn(google::protobuf::Message& answer);
  /// Inserts the stored texts, and removes the name of our folder.
  void Resolve(google::protobuf::Message& request) const;

  void Write(const google::bytestream::WriteRequest& request);
  void StopWriting();
  void Read(const google::bytestream::ReadRequest& request);
  void Watch(const v1::WatchJobRequest& request);
  void Wait(const google::longrunning::WaitOperationRequest& request);
  /// Claims a job as a worker and appends one event.
  void Work(const v1::JobEvent& event);
  /// Ends the claimed job as a worker with this text as its answer.
  void Answer(const google::protobuf::StringValue& answer);

  /// CHECKs the stores' invariants, then removes everything.
  void Clear();

 private:
  void SetPlan(const v1::JobSpec& spec, v1::Plan& plan);
  void EndJobs();

  const std::string folder_;
  const ServerOptions options_;
  Logger log_;
  Metrics metrics_;
  std::unique_ptr<JobStore> jobs_;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<Tracer> tracer_;
  Environment env_;
  std::vector<std::string> names_;
  std::unique_ptr<Upload> upload_;
  std::optional<StoredJob> claimed_;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_FUZZ_WORLD_H_
