#include "onnx/deciding_inputs.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "onnx/importer.h"
#include "onnx/tensor_decode.h"

namespace mendel {
namespace {

bool IsSetting(const DeclaredValue& input) {
  const bool whole =
      input.dtype == DType::kBool || input.dtype == DType::kI32 || input.dtype == DType::kI64;
  return whole && input.has_shape &&
         std::all_of(input.shape.begin(), input.shape.end(),
                     [](const DeclaredDimension& dimension) { return dimension.size == 1; });
}

/// The settings that `value` is computed from; false where it depends on other inputs, too.
bool Trace(const std::string& value,
           const std::map<std::string_view, const onnx::NodeProto*>& makers,
           const std::map<std::string, TensorType>& settings, const std::set<std::string>& inputs,
           std::set<std::string>& found) {
  std::vector<std::string> open = {value};
  std::set<std::string> seen;
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (!seen.insert(name).second) continue;
    const auto maker = makers.find(name);
    if (maker != makers.end()) {
      for (const std::string& operand : maker->second->input()) open.push_back(operand);
      continue;
    }
    if (inputs.count(name) == 0) continue;  // a stored tensor
    if (settings.count(name) == 0) return false;
    found.insert(name);
  }
  return true;
}

/// The element of an integer tensor that has one; external data is not looked at.
std::optional<int64_t> OneInteger(const onnx::TensorProto& proto, const ModelFile& file) {
  if (proto.data_location() != onnx::TensorProto::DEFAULT) return std::nullopt;
  ExternalFiles none("");
  const auto tensor = DecodeTensor(proto, file, none);
  if (!tensor.ok() || tensor->size() != 1 || IsFloat(tensor->dtype())) return std::nullopt;
  return tensor->IntAt(0);
}

}  // namespace

std::map<std::string, TensorType> DecidingInputs(const onnx::GraphProto& graph) {
  std::map<std::string, TensorType> settings;
  std::set<std::string> inputs;
  for (const onnx::ValueInfoProto& info : graph.input()) {
    inputs.insert(info.name());
    const auto declared = ReadDeclaration(info, "input");
    if (!declared.ok() || !IsSetting(*declared)) continue;
    settings.emplace(info.name(), TensorType{declared->dtype, Shape(declared->shape.size(), 1)});
  }
  for (const onnx::TensorProto& tensor : graph.initializer()) inputs.erase(tensor.name());
  std::map<std::string_view, const onnx::NodeProto*> makers;
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& output : node.output()) makers[output] = &node;
  }
  std::map<std::string, TensorType> deciding;
  for (const onnx::NodeProto& node : graph.node()) {
    std::set<std::string> found;
    if (node.op_type() != "If" || node.input_size() != 1 ||
        !Trace(node.input(0), makers, settings, inputs, found)) {
      continue;
    }
    for (const std::string& name : found) deciding.insert(*settings.find(name));
  }
  return deciding;
}

std::set<int64_t> ComparedIntegers(const ModelFile& file) {
  const onnx::GraphProto& graph = file.model.graph();
  std::map<std::string_view, const onnx::TensorProto*> stored;
  for (const onnx::TensorProto& tensor : graph.initializer()) stored[tensor.name()] = &tensor;
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() != "Constant" || node.output_size() != 1) continue;
    for (const onnx::AttributeProto& attribute : node.attribute())
      if (attribute.name() == "value") stored[node.output(0)] = &attribute.t();
  }
  std::set<int64_t> integers;
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() != "Equal") continue;
    for (const std::string& operand : node.input()) {
      const auto found = stored.find(operand);
      if (found == stored.end()) continue;
      const std::optional<int64_t> integer = OneInteger(*found->second, file);
      if (integer.has_value()) integers.insert(*integer);
    }
  }
  return integers;
}

}  // namespace mendel
