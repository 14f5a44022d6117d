#include "onnx/external_locations.h"

#include <google/protobuf/descriptor.h>

#include <set>
#include <utility>

#include "base/status.h"
#include "onnx/mapped_file.h"
#include "onnx/model_reader.h"

namespace mendel {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// Depth is bounded by the parser's own limit on nested messages.
void Collect(const Message& message, std::set<std::string>& locations) {
  if (message.GetDescriptor() == onnx::TensorProto::descriptor()) {
    const auto& tensor = static_cast<const onnx::TensorProto&>(message);
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location") locations.insert(entry.value());
    }
    return;
  }
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Collect(reflection.GetMessage(message, field), locations);
      continue;
    }
    for (int k = 0; k < reflection.FieldSize(message, field); ++k) {
      Collect(reflection.GetRepeatedMessage(message, field, k), locations);
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExternalLocations(const std::string& path) {
  MENDEL_ASSIGN_OR_RETURN(OwnedBytes bytes, MapFile(path));
  MENDEL_ASSIGN_OR_RETURN(const ModelFile file, ReadModel(std::move(bytes)));
  std::set<std::string> locations;
  Collect(file.model, locations);
  return std::vector<std::string>(locations.begin(), locations.end());
}

}  // namespace mendel
