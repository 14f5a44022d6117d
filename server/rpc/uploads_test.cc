// Uploads: resumed, checked against their hash, and bounded by the client's quota.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "google/bytestream/bytestream.grpc.pb.h"
#include "server/rpc/test_server.h"

namespace mendel::server {
namespace {

using google::bytestream::ByteStream;

constexpr char kUuid[] = "76543210-89ab-cdef-0123-456789abcdef";

std::string UploadName(const std::string& bytes) {
  return Cat("uploads/", kUuid, "/blobs/", Sha256Hex(std::string_view(bytes)), "/", bytes.size());
}

/// Sends bytes [begin, end) in one stream; `finish` ends the upload. The committed size, or the
/// error.
std::pair<grpc::Status, int64_t> Send(ByteStream::Stub& stub, const std::string& bytes,
                                      size_t begin, size_t end, bool finish) {
  grpc::ClientContext context;
  Prepare(context);
  google::bytestream::WriteResponse response;
  auto stream = stub.Write(&context, &response);
  google::bytestream::WriteRequest request;
  request.set_resource_name(UploadName(bytes));
  constexpr size_t kChunk = 1 << 20;
  for (size_t at = begin; at < end; at += kChunk) {
    request.set_write_offset(static_cast<int64_t>(at));
    request.set_data(bytes.substr(at, std::min(kChunk, end - at)));
    request.set_finish_write(finish && at + kChunk >= end);
    if (!stream->Write(request)) break;
  }
  stream->WritesDone();
  const grpc::Status status = stream->Finish();
  return {status, response.committed_size()};
}

std::string RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  uint32_t state = 1;
  for (char& c : bytes) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

TEST(Uploads, UploadResumesAndDownloads) {
  for (bool over_socket : {false, true}) {
    TestServer server;
    ByteStream::Stub stub(server.channel(over_socket));
    const std::string bytes = RandomBytes((5 << 20) + 123);
    const size_t half = 2 << 20;
    const auto [first, committed] = Send(stub, bytes, 0, half, false);
    ASSERT_TRUE(first.ok()) << first.error_message();
    EXPECT_EQ(committed, static_cast<int64_t>(half));
    EXPECT_EQ(Send(stub, bytes, half + 1, bytes.size(), true).first.error_code(),
              grpc::OUT_OF_RANGE);
    grpc::ClientContext context;
    Prepare(context);
    google::bytestream::QueryWriteStatusRequest query;
    query.set_resource_name(UploadName(bytes));
    google::bytestream::QueryWriteStatusResponse status;
    ASSERT_TRUE(stub.QueryWriteStatus(&context, query, &status).ok());
    EXPECT_EQ(status.committed_size(), static_cast<int64_t>(half));
    EXPECT_FALSE(status.complete());
    const auto [second, all] = Send(stub, bytes, half, bytes.size(), true);
    ASSERT_TRUE(second.ok()) << second.error_message();
    EXPECT_EQ(all, static_cast<int64_t>(bytes.size()));
    // Again: the file is there, nothing is read. (gRPC's in-process transport lets a client write
    // on until its deadline.)
    if (over_socket) {
      EXPECT_EQ(Send(stub, bytes, 0, bytes.size(), true).second,
                static_cast<int64_t>(bytes.size()));
    }
    const std::string name = Cat("blobs/", Sha256Hex(std::string_view(bytes)), "/", bytes.size());
    EXPECT_TRUE(ReadBlob(server.channel(over_socket), name, 0, 0) == bytes);
    EXPECT_TRUE(ReadBlob(server.channel(over_socket), name, 4 << 20, 1000) ==
                bytes.substr(4 << 20, 1000));
    EXPECT_EQ(ReadBlob(server.channel(over_socket), name, static_cast<int64_t>(bytes.size()), 0),
              "");
    EXPECT_EQ(
        ReadBlob(server.channel(over_socket), name, static_cast<int64_t>(bytes.size()) + 1, 0),
        Cat("error ", static_cast<int>(grpc::OUT_OF_RANGE)));
  }
}

/// Sends `sent` under the name of `named`; the bytes do not fit it.
void SendWrong(ByteStream::Stub& stub, const std::string& named, const std::string& sent) {
  google::bytestream::WriteRequest request;
  request.set_resource_name(UploadName(named));
  request.set_data(sent);
  request.set_finish_write(true);
  grpc::ClientContext context;
  Prepare(context);
  google::bytestream::WriteResponse response;
  auto stream = stub.Write(&context, &response);
  stream->Write(request);
  stream->WritesDone();
  EXPECT_EQ(stream->Finish().error_code(), grpc::DATA_LOSS);
}

TEST(Uploads, WrongBytesAreNotTaken) {
  TestServer server;
  ByteStream::Stub stub(server.channel());
  SendWrong(stub, "right", "wrong");
  EXPECT_EQ(
      ReadBlob(server.channel(), Cat("blobs/", Sha256Hex(std::string_view("right")), "/5"), 0, 0),
      Cat("error ", static_cast<int>(grpc::NOT_FOUND)));
}

TEST(Uploads, UploadsBeyondTheQuotaAreRefused) {
  TestServer server([](ServerOptions& options) { options.max_stored_bytes_per_client = 100; });
  ByteStream::Stub stub(server.channel());
  const auto send = [&](const std::string& bytes) {
    return Send(stub, bytes, 0, bytes.size(), true).first;
  };
  EXPECT_TRUE(send(std::string(60, 'a')).ok());
  const grpc::Status full = send(std::string(41, 'b'));
  EXPECT_EQ(full.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_NE(full.error_details().find("CLIENT_QUOTA"), std::string::npos);
  EXPECT_NE(full.error_message().find("have 60 bytes, and 41 more"), std::string::npos)
      << full.error_message();
  // Wrong bytes are not kept, and do not count.
  SendWrong(stub, std::string(40, 'c'), std::string(40, 'd'));
  EXPECT_TRUE(send(std::string(40, 'e')).ok());
  EXPECT_EQ(send("f").error_code(), grpc::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace mendel::server
