// grpc.reflection.v1, which gRPC 1.51 lacks: the services of the table of roles, and the files of
// protobuf's generated pool. The gate (gate.h) checks the caller.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "server/rpc/roles.h"
#include "server/rpc/services.h"

namespace mendel::server {
namespace {

namespace reflection = grpc::reflection::v1;
using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

void AddFile(const FileDescriptor& file, std::set<std::string>& added,
             reflection::FileDescriptorResponse& response) {
  if (!added.insert(file.name()).second) return;
  google::protobuf::FileDescriptorProto text;
  file.CopyTo(&text);
  response.add_file_descriptor_proto(text.SerializeAsString());
  for (int k = 0; k < file.dependency_count(); ++k) AddFile(*file.dependency(k), added, response);
}

void SetNotFound(const std::string& name, reflection::ServerReflectionResponse& response) {
  auto& error = *response.mutable_error_response();
  error.set_error_code(grpc::StatusCode::NOT_FOUND);
  error.set_error_message(Cat("'", name, "' is not known"));
}

void SetFile(const FileDescriptor* file, const std::string& name,
             reflection::ServerReflectionResponse& response) {
  std::set<std::string> added;
  if (file == nullptr) return SetNotFound(name, response);
  AddFile(*file, added, *response.mutable_file_descriptor_response());
}

void SetExtensions(const std::string& type, reflection::ServerReflectionResponse& response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const auto* message = pool.FindMessageTypeByName(type);
  if (message == nullptr) return SetNotFound(type, response);
  std::vector<const google::protobuf::FieldDescriptor*> extensions;
  pool.FindAllExtensions(message, &extensions);
  auto& numbers = *response.mutable_all_extension_numbers_response();
  numbers.set_base_type_name(type);
  for (const auto* extension : extensions) numbers.add_extension_number(extension->number());
  std::sort(numbers.mutable_extension_number()->begin(), numbers.mutable_extension_number()->end());
}

reflection::ServerReflectionResponse Answer(const reflection::ServerReflectionRequest& request) {
  using Request = reflection::ServerReflectionRequest;
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  reflection::ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      SetFile(pool.FindFileByName(request.file_by_filename()), request.file_by_filename(),
              response);
      break;
    case Request::kFileContainingSymbol:
      SetFile(pool.FindFileContainingSymbol(request.file_containing_symbol()),
              request.file_containing_symbol(), response);
      break;
    case Request::kFileContainingExtension: {
      const auto& wanted = request.file_containing_extension();
      const auto* type = pool.FindMessageTypeByName(wanted.containing_type());
      const auto* extension =
          type == nullptr ? nullptr : pool.FindExtensionByNumber(type, wanted.extension_number());
      SetFile(extension == nullptr ? nullptr : extension->file(),
              Cat(wanted.containing_type(), " ", wanted.extension_number()), response);
      break;
    }
    case Request::kAllExtensionNumbersOfType:
      SetExtensions(request.all_extension_numbers_of_type(), response);
      break;
    case Request::kListServices: {
      std::set<std::string> names;
      for (const MethodRole& row : MethodRoles())
        names.emplace(row.method.substr(1, row.method.rfind('/') - 1));
      auto& services = *response.mutable_list_services_response();
      for (const std::string& name : names) services.add_service()->set_name(name);
      break;
    }
    case Request::MESSAGE_REQUEST_NOT_SET: {
      auto& error = *response.mutable_error_response();
      error.set_error_code(grpc::StatusCode::INVALID_ARGUMENT);
      error.set_error_message("the request has no question");
    }
  }
  return response;
}

/// Reads a question, writes its answer, and so on until the caller is done.
class Conversation final : public grpc::ServerBidiReactor<reflection::ServerReflectionRequest,
                                                          reflection::ServerReflectionResponse> {
 public:
  Conversation() { StartRead(&request_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    response_ = Answer(request_);
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  reflection::ServerReflectionRequest request_;
  reflection::ServerReflectionResponse response_;
};

class ReflectionService final : public reflection::ServerReflection::CallbackService {
 public:
  grpc::ServerBidiReactor<reflection::ServerReflectionRequest,
                          reflection::ServerReflectionResponse>*
  ServerReflectionInfo(grpc::CallbackServerContext* /*context*/) override {
    return new Conversation();
  }
};

}  // namespace

std::unique_ptr<grpc::Service> MakeReflectionService() {
  return std::make_unique<ReflectionService>();
}

}  // namespace mendel::server
