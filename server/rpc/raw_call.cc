#include "server/rpc/raw_call.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <vector>

#include "server/rpc/test_server.h"

namespace mendel::server {

std::pair<grpc::Status, std::string> RawCall(const std::shared_ptr<grpc::Channel>& channel,
                                             const std::string& method, const std::string& token,
                                             const std::string& request, int64_t deadline_ms) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  Prepare(context, token);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(deadline_ms));
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  next();
  const grpc::Slice slice(request);
  call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  next();
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  next();
  std::vector<grpc::Slice> slices;
  if (answer.Valid()) answer.Dump(&slices);
  std::string bytes;
  for (const grpc::Slice& one : slices)
    bytes.append(reinterpret_cast<const char*>(one.begin()), one.size());
  // Other messages of a stream do not matter.
  while (answer.Valid()) {
    answer.Clear();
    call->Read(&answer, nullptr);
    if (!next()) break;
  }
  grpc::Status status;
  call->Finish(&status, nullptr);
  next();
  return {status, bytes};
}

}  // namespace mendel::server
