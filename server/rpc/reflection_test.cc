#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "server/rpc/raw_call.h"
#include "server/rpc/test_server.h"

namespace mendel::server {
namespace {

namespace reflection = grpc::reflection::v1;

class Reflection : public ::testing::Test {
 protected:
  reflection::ServerReflectionResponse Ask(const reflection::ServerReflectionRequest& request,
                                           const std::string& version = "v1") {
    // Both versions have the same messages.
    const std::string method =
        "/grpc.reflection." + version + ".ServerReflection/ServerReflectionInfo";
    const auto [status, bytes] =
        RawCall(server_.channel(), method, "", request.SerializeAsString(), 10'000);
    EXPECT_TRUE(status.ok()) << status.error_message();
    reflection::ServerReflectionResponse response;
    EXPECT_TRUE(response.ParseFromString(bytes));
    return response;
  }

  TestServer server_;
};

TEST_F(Reflection, BothVersionsListTheSameServices) {
  reflection::ServerReflectionRequest request;
  request.set_list_services("*");
  const auto names = [&](const std::string& version) {
    const reflection::ServerReflectionResponse response = Ask(request, version);
    std::set<std::string> result;
    for (const auto& service : response.list_services_response().service())
      result.insert(service.name());
    return result;
  };
  const std::set<std::string> newer = names("v1"), older = names("v1alpha");
  EXPECT_EQ(newer, older);
  EXPECT_TRUE(newer.contains("mendel.v1.Jobs"));
  EXPECT_TRUE(newer.contains("grpc.reflection.v1.ServerReflection"));
}

TEST_F(Reflection, AFileComesWithThoseThatItNeeds) {
  reflection::ServerReflectionRequest request;
  request.set_file_containing_symbol("mendel.v1.Jobs.SubmitJob");
  const reflection::ServerReflectionResponse response = Ask(request);
  EXPECT_EQ(response.original_request().SerializeAsString(), request.SerializeAsString());
  std::set<std::string> names, needed;
  for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
    google::protobuf::FileDescriptorProto file;
    ASSERT_TRUE(file.ParseFromString(bytes));
    names.insert(file.name());
    needed.insert(file.dependency().begin(), file.dependency().end());
  }
  EXPECT_TRUE(names.contains("mendel/v1/jobs.proto"));
  for (const std::string& name : needed) EXPECT_TRUE(names.contains(name)) << name;
  request.set_file_by_filename("mendel/v1/jobs.proto");
  EXPECT_EQ(Ask(request).file_descriptor_response().SerializeAsString(),
            response.file_descriptor_response().SerializeAsString());
}

TEST_F(Reflection, ExtensionsAreFoundByTheirNumbers) {
  reflection::ServerReflectionRequest request;
  request.set_all_extension_numbers_of_type("google.protobuf.MethodOptions");
  EXPECT_EQ(Ask(request).all_extension_numbers_response().base_type_name(),
            "google.protobuf.MethodOptions");
  request.mutable_file_containing_extension()->set_containing_type("google.protobuf.MethodOptions");
  request.mutable_file_containing_extension()->set_extension_number(1);
  EXPECT_EQ(Ask(request).error_response().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(Reflection, WhatIsNotKnownIsAnErrorOfTheAnswer) {
  reflection::ServerReflectionRequest request;
  EXPECT_EQ(Ask(request).error_response().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_file_containing_symbol("mendel.v1.Nothing");
  EXPECT_EQ(Ask(request).error_response().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(Ask(request).error_response().error_message(),
              ::testing::HasSubstr("mendel.v1.Nothing"));
}

/// A call of any method, open until the server ends it.
class OpenCall {
 public:
  OpenCall(grpc::GenericStub& stub, const std::string& method, const std::string& request)
      : stream_(stub.PrepareCall(&context_, method, &queue_)) {
    stream_->StartCall(&queue_);
    EXPECT_TRUE(Ends());
    const grpc::Slice slice(request);
    stream_->Write(grpc::ByteBuffer(&slice, 1), &queue_);
    EXPECT_TRUE(Ends());
    Read();
  }

  /// The bytes of the next message.
  std::string Read() {
    grpc::ByteBuffer answer;
    EXPECT_TRUE(Reads(answer));
    std::vector<grpc::Slice> slices;
    std::string bytes;
    if (answer.Valid()) {
      EXPECT_TRUE(answer.Dump(&slices).ok());
    }
    for (const grpc::Slice& one : slices)
      bytes.append(reinterpret_cast<const char*>(one.begin()), one.size());
    return bytes;
  }

  grpc::Status Finish() {
    grpc::ByteBuffer answer;
    while (Reads(answer)) {
    }
    grpc::Status status;
    stream_->Finish(&status, &queue_);
    EXPECT_TRUE(Ends());
    return status;
  }

 private:
  bool Reads(grpc::ByteBuffer& answer) {
    stream_->Read(&answer, &queue_);
    return Ends();
  }
  bool Ends() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

TEST_F(Reflection, AStopDoesNotWaitForIdleCallsOfLibraries) {
  reflection::ServerReflectionRequest request;
  request.set_list_services("*");
  const std::string services = request.SerializeAsString();
  grpc::GenericStub stub(server_.channel(/*over_socket=*/true));
  const std::string method = ".ServerReflection/ServerReflectionInfo";
  OpenCall newer(stub, "/grpc.reflection.v1" + method, services);
  OpenCall older(stub, "/grpc.reflection.v1alpha" + method, services);
  OpenCall health(stub, "/grpc.health.v1.Health/Watch", "");
  server_.rpc().BeginDrain();
  grpc::health::v1::HealthCheckResponse state;
  EXPECT_TRUE(state.ParseFromString(health.Read()));
  EXPECT_EQ(state.status(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  std::thread stop([&] { server_.rpc().Stop(int64_t{3600} * 1'000'000); });
  for (OpenCall* call : {&newer, &older, &health})
    EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::CANCELLED);
  stop.join();
}

}  // namespace
}  // namespace mendel::server
