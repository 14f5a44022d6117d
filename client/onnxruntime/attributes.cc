#include "client/onnxruntime/attributes.h"

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/onnxruntime/tensor_facts.h"

namespace mendel::ort {
namespace {

/// The bytes of an attribute's value. ONNX Runtime reports the size together with an error.
absl::StatusOr<std::string> ReadBytes(const RuntimeApi& api, const Attribute* attribute, int kind) {
  std::string bytes(256, '\0');
  size_t size = 0;
  absl::Status read =
      api.Take(kReadAttribute(api.main(), attribute, kind, bytes.data(), bytes.size(), &size));
  if (!read.ok() && size > bytes.size()) {
    bytes.resize(size);
    read = api.Take(kReadAttribute(api.main(), attribute, kind, bytes.data(), bytes.size(), &size));
  }
  MENDEL_RETURN_IF_ERROR(read);
  bytes.resize(size);
  return bytes;
}

template <class Number>
std::vector<Number> Numbers(std::string_view bytes) {
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

/// Lists of texts are texts that each end with a zero byte.
void AddStrings(std::string_view bytes, onnx::AttributeProto& proto) {
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\0'), bytes.size());
    proto.add_strings(std::string(bytes.substr(0, end)));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
}

absl::Status ReadTensor(const RuntimeApi& api, const Attribute* attribute,
                        onnx::TensorProto& tensor) {
  MENDEL_ASSIGN_OR_RETURN(Value* const value, api.Get<Value*>(kAttributeTensor, attribute));
  const absl::Status written = WriteTensor(api, value, tensor);
  kReleaseValue(api.main(), value);
  return written;
}

void SetValue(int kind, std::string_view bytes, onnx::AttributeProto& proto) {
  switch (kind) {
    case kInt:
      proto.set_type(onnx::AttributeProto::INT);
      for (const int64_t value : Numbers<int64_t>(bytes)) proto.set_i(value);
      break;
    case kInts:
      proto.set_type(onnx::AttributeProto::INTS);
      for (const int64_t value : Numbers<int64_t>(bytes)) proto.add_ints(value);
      break;
    case kFloat:
      proto.set_type(onnx::AttributeProto::FLOAT);
      for (const float value : Numbers<float>(bytes)) proto.set_f(value);
      break;
    case kFloats:
      proto.set_type(onnx::AttributeProto::FLOATS);
      for (const float value : Numbers<float>(bytes)) proto.add_floats(value);
      break;
    case kString:
      proto.set_type(onnx::AttributeProto::STRING);
      if (bytes.ends_with('\0')) bytes.remove_suffix(1);  // ONNX Runtime's own
      proto.set_s(std::string(bytes));
      break;
    default:
      proto.set_type(onnx::AttributeProto::STRINGS);
      AddStrings(bytes, proto);
  }
}

}  // namespace

absl::Status ReadAttributes(const RuntimeApi& api, const Node* node, onnx::NodeProto& proto) {
  MENDEL_ASSIGN_OR_RETURN(const auto attributes,
                          api.List<Attribute>(kNodeNumAttributes, kNodeAttributes, node));
  for (const Attribute* attribute : attributes) {
    const auto kind = api.Get<int>(kAttributeType, attribute);
    if (attribute == nullptr || !kind.ok()) continue;  // of a type that no operator of Mendel has
    if (*kind == kUndefined || *kind == kSubgraph) continue;
    MENDEL_ASSIGN_OR_RETURN(const char* const name,
                            api.Get<const char*>(kAttributeName, attribute));
    onnx::AttributeProto& added = *proto.add_attribute();
    added.set_name(name);
    if (*kind == kTensor) {
      added.set_type(onnx::AttributeProto::TENSOR);
      MENDEL_RETURN_IF_ERROR(ReadTensor(api, attribute, *added.mutable_t()));
      continue;
    }
    MENDEL_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(api, attribute, *kind));
    SetValue(*kind, bytes, added);
  }
  return absl::OkStatus();
}

}  // namespace mendel::ort
