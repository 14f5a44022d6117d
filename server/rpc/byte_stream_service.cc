// Bytes of files. A transfer holds one message at a time: the next one is requested, or made, when
// the last one has been dealt with, so that HTTP/2's flow control slows the other side down.
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "google/bytestream/bytestream.grpc.pb.h"
#include "server/rpc/errors.h"
#include "server/rpc/services.h"
#include "server/rpc/transfer.h"
#include "server/rpc/unary.h"

namespace mendel::server {
namespace {

using google::bytestream::ReadRequest;
using google::bytestream::ReadResponse;
using google::bytestream::WriteRequest;
using google::bytestream::WriteResponse;

/// Ends a transfer that does not move, or too slowly.
class IdleWatch {
 public:
  IdleWatch(Environment& env, grpc::CallbackServerContext& context)
      : env_(env),
        context_(context),
        id_(env.hub.NewId()),
        pace_(env.options.min_transfer_bytes_per_second, env.options.transfer_idle_seconds) {
    WaitsForClient();
    env_.hub.Add(id_, [this] {
      if (env_.clock.SteadyMicros() - moved_ > env_.options.transfer_idle_seconds * 1'000'000)
        context_.TryCancel();
    });
  }
  ~IdleWatch() { env_.hub.Remove(id_); }
  void WaitsForClient() { moved_ = waits_since_ = env_.clock.SteadyMicros(); }
  void Moved(size_t bytes) {
    moved_ = env_.clock.SteadyMicros();
    if (!pace_.Moved(static_cast<int64_t>(bytes), moved_ - waits_since_)) context_.TryCancel();
  }

 private:
  Environment& env_;
  grpc::CallbackServerContext& context_;
  const uint64_t id_;
  Pace pace_;
  std::atomic<int64_t> moved_ = 0;
  int64_t waits_since_ = 0;
};

/// A transfer that may begin.
struct Admission {
  Principal principal;
  std::unique_ptr<Permits::Permit> permit;
  CallSpan span;
};

class WriteCall final : public grpc::ServerReadReactor<WriteRequest> {
 public:
  WriteCall(Environment& env, grpc::CallbackServerContext& context, Admission admission,
            WriteResponse& response)
      : env_(env),
        permit_(std::move(admission.permit)),
        span_(std::move(admission.span)),
        response_(response),
        upload_(env.blobs, env.jobs, env.options, std::move(admission.principal)),
        idle_(env, context) {
    StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    if (ok) idle_.Moved(request_.data().size());
    env_.pool.Post([this, ok] { Step(ok); });
  }
  void OnDone() override { delete this; }

 private:
  void Step(bool ok) {
    absl::StatusOr<bool> done = ok ? upload_.Take(request_) : upload_.Stop();
    if (ok)
      env_.metrics.Add("mendel_transfer_bytes_total", {{"direction", "upload"}},
                       static_cast<double>(request_.data().size()));
    if (done.ok() && !*done) {
      idle_.WaitsForClient();
      return StartRead(&request_);
    }
    response_.set_committed_size(upload_.committed());
    permit_.reset();
    span_.End(done.status());
    Finish(EndCall(env_, kWriteMethod, done.status(), span_.trace()));
  }

  Environment& env_;
  std::unique_ptr<Permits::Permit> permit_;
  CallSpan span_;
  WriteResponse& response_;
  WriteRequest request_;
  Upload upload_;
  IdleWatch idle_;
};

class ReadCall final : public grpc::ServerWriteReactor<ReadResponse> {
 public:
  ReadCall(Environment& env, grpc::CallbackServerContext& context, Admission admission,
           const ReadRequest& request)
      : env_(env),
        permit_(std::move(admission.permit)),
        span_(std::move(admission.span)),
        request_(request),
        download_(env.blobs, std::move(admission.principal)),
        idle_(env, context) {
    env_.pool.Post([this] { Step(); });
  }
  void OnWriteDone(bool ok) override {
    if (ok) idle_.Moved(chunk_.data().size());
    if (!ok) return End(absl::CancelledError("the client went away or its time was over"));
    env_.pool.Post([this] { Step(); });
  }
  void OnDone() override { delete this; }

 private:
  void Step() {
    const absl::StatusOr<bool> more = download_.Next(request_, chunk_);
    if (!more.ok() || !*more) return End(more.status());
    env_.metrics.Add("mendel_transfer_bytes_total", {{"direction", "download"}},
                     static_cast<double>(chunk_.data().size()));
    idle_.WaitsForClient();
    StartWrite(&chunk_);
  }
  void End(const absl::Status& status) {
    permit_.reset();
    span_.End(status);
    Finish(EndCall(env_, kReadMethod, status, span_.trace()));
  }

  Environment& env_;
  std::unique_ptr<Permits::Permit> permit_;
  CallSpan span_;
  const ReadRequest request_;
  ReadResponse chunk_;
  Download download_;
  IdleWatch idle_;
};

class ByteStreamService final : public google::bytestream::ByteStream::CallbackService {
 public:
  static constexpr std::string_view kService = "google.bytestream.ByteStream";
  explicit ByteStreamService(Environment& env) : env_(env) {}
  MENDEL_UNARY(QueryWriteStatus, google::bytestream::QueryWriteStatusRequest,
               google::bytestream::QueryWriteStatusResponse)

  grpc::ServerReadReactor<WriteRequest>* Write(grpc::CallbackServerContext* context,
                                               WriteResponse* response) override {
    absl::StatusOr<Admission> admission = AdmitTransfer(*context, kWriteMethod);
    if (!admission.ok())
      return new Refusal<grpc::ServerReadReactor<WriteRequest>>(
          EndCall(env_, kWriteMethod, admission.status()));
    return new WriteCall(env_, *context, *std::move(admission), *response);
  }

  grpc::ServerWriteReactor<ReadResponse>* Read(grpc::CallbackServerContext* context,
                                               const ReadRequest* request) override {
    absl::StatusOr<Admission> admission = AdmitTransfer(*context, kReadMethod);
    if (!admission.ok())
      return new Refusal<grpc::ServerWriteReactor<ReadResponse>>(
          EndCall(env_, kReadMethod, admission.status()));
    return new ReadCall(env_, *context, *std::move(admission), *request);
  }

 private:
  absl::StatusOr<Admission> AdmitTransfer(const grpc::CallbackServerContext& context,
                                          std::string_view method) {
    MENDEL_ASSIGN_OR_RETURN(Principal principal, Admit(env_, context, method));
    MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<Permits::Permit> permit,
                            env_.transfers.Take(principal.name));
    CallSpan span(env_, method, principal);
    return Admission{std::move(principal), std::move(permit), std::move(span)};
  }

  Environment& env_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeByteStreamService(Environment& env) {
  return std::make_unique<ByteStreamService>(env);
}

}  // namespace mendel::server
