#include "onnx/interface.h"

#include <cstddef>
#include <memory>
#include <set>
#include <utility>

#include "base/status.h"
#include "onnx/importer.h"
#include "onnx/mapped_file.h"
#include "onnx/model_reader.h"
#include "onnx/tensor_decode.h"

namespace mendel {
namespace {

absl::StatusOr<ModelInterface> Interface(OwnedBytes bytes) {
  MENDEL_ASSIGN_OR_RETURN(const ModelFile file, ReadModel(std::move(bytes)));
  const onnx::GraphProto& graph = file.model.graph();
  std::set<std::string> set;
  for (const onnx::TensorProto& tensor : graph.initializer()) set.insert(tensor.name());
  ModelInterface result;
  for (const onnx::ValueInfoProto& info : graph.input()) {
    if (set.contains(info.name())) continue;
    MENDEL_ASSIGN_OR_RETURN(DeclaredValue value, ReadDeclaration(info, "input"));
    result.inputs.push_back(std::move(value));
  }
  for (const onnx::ValueInfoProto& info : graph.output()) {
    MENDEL_ASSIGN_OR_RETURN(DeclaredValue value, ReadDeclaration(info, "output"));
    result.outputs.push_back(std::move(value));
  }
  result.producer_name = file.model.producer_name();
  result.graph_name = graph.name();
  result.domain = file.model.domain();
  result.description = file.model.doc_string();
  result.version = file.model.model_version();
  for (const auto& entry : file.model.metadata_props())
    result.metadata[entry.key()] = entry.value();
  return result;
}

}  // namespace

absl::StatusOr<DeclaredValue> ReadDeclaration(const onnx::ValueInfoProto& info,
                                              std::string_view kind) {
  DeclaredValue value;
  value.name = info.name();
  if (!info.type().has_tensor_type())
    return Unsupported(kind, " '", value.name, "' is not a tensor");
  const onnx::TypeProto::Tensor& type = info.type().tensor_type();
  const auto dtype = DTypeFromOnnx(type.elem_type());
  if (!dtype.ok()) return Annotate(dtype.status(), Cat(kind, " '", value.name, "'"));
  value.dtype = *dtype;
  value.has_shape = type.has_shape();
  for (const auto& dim : type.shape().dim()) {
    DeclaredDimension& declared = value.shape.emplace_back();
    // Old exporters write -1 for an unknown extent.
    if (dim.has_dim_value() && dim.dim_value() >= 0) declared.size = dim.dim_value();
    declared.name = dim.dim_param();
  }
  return value;
}

absl::StatusOr<ModelInterface> ReadInterface(const std::string& path) {
  MENDEL_ASSIGN_OR_RETURN(OwnedBytes bytes, MapFile(path));
  return Interface(std::move(bytes));
}

absl::StatusOr<ModelInterface> ParseInterface(std::string_view bytes) {
  const std::span<const std::byte> span(reinterpret_cast<const std::byte*>(bytes.data()),
                                        bytes.size());
  return Interface({span, nullptr});  // nothing of the result refers to the bytes
}

}  // namespace mendel
