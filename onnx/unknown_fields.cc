#include "onnx/unknown_fields.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace mendel {
namespace {

/// " 'name'" of a message that has a name.
std::string NameOf(const google::protobuf::Message& message) {
  const auto* field = message.GetDescriptor()->FindFieldByName("name");
  if (field == nullptr || field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_STRING)
    return "";
  const std::string name = message.GetReflection()->GetString(message, field);
  return name.empty() ? "" : Cat(" '", name, "'");
}

}  // namespace

absl::Status RefuseUnknownFields(const google::protobuf::Message& message) {
  const std::string& kind = message.GetDescriptor()->name();
  if (kind == "StringStringEntryProto") return absl::OkStatus();  // documentation
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const google::protobuf::UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) {
    return Unsupported(
        kind, NameOf(message), " has field number ", unknown.field(0).number(),
        ", which this version does not know: the model was written for a newer ONNX");
  }
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      MENDEL_RETURN_IF_ERROR(RefuseUnknownFields(reflection.GetMessage(message, field)));
      continue;
    }
    for (int k = 0; k < reflection.FieldSize(message, field); ++k) {
      MENDEL_RETURN_IF_ERROR(RefuseUnknownFields(reflection.GetRepeatedMessage(message, field, k)));
    }
  }
  return absl::OkStatus();
}

}  // namespace mendel
