// ONNX files in parts, for machines and programs without an ONNX library.
//
//   model_parts strip MODEL.onnx SHELL.onnx        without its weights (bench/weight_recipe.h)
//   model_parts fill SHELL.onnx MODEL.onnx [SEED]  with weights drawn from the seed (1)
//   model_parts unpack MODEL.onnx FOLDER           FOLDER/graph.json and FOLDER/tensors.bin
//   model_parts backend MODEL.onnx PART.onnx       from the first dilated convolution on
//   (bench/model_backend.h)
//
// graph.json: "opset", "inputs" (name, type, shape; open extents are 1), "outputs" (names), "nodes"
// (op, name, inputs, outputs, attributes) in the file's order, "tensors": name -> type, shape, and
// offset in tensors.bin (little endian, row-major, 64-byte aligned). Nodes Constant are tensors.
// Exit code 1 and one line where a model cannot be reported so.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "base/status.h"
#include "bench/model_backend.h"
#include "bench/weight_recipe.h"
#include "graph/tensor.h"
#include "onnx/model.pb.h"
#include "onnx/model_reader.h"
#include "onnx/tensor_decode.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;
constexpr int64_t kAlignment = 64;

absl::StatusOr<onnx::ModelProto> Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  onnx::ModelProto model;
  if (!file) return absl::NotFoundError(Cat("cannot open ", path));
  if (!model.ParseFromIstream(&file) || !model.has_graph())
    return InvalidInput(path, " is no ONNX model");
  return model;
}

absl::Status Write(const onnx::ModelProto& model, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  if (!file || !model.SerializeToOstream(&file) || !file.flush())
    return absl::UnavailableError(Cat("cannot write ", path));
  return absl::OkStatus();
}

/// Tensors of one model, written as they come.
class TensorFile {
 public:
  explicit TensorFile(const std::string& path) : file_(path, std::ios::binary) {}

  absl::Status Add(const std::string& name, const onnx::TensorProto& proto) {
    const auto tensor = DecodeTensor(proto);
    if (!tensor.ok()) return Annotate(tensor.status(), Cat("tensor '", name, "'"));
    while (end_ % kAlignment != 0) file_.put('\0'), ++end_;
    description_[name] = {
        {"type", DTypeName(tensor->dtype())}, {"shape", tensor->shape()}, {"offset", end_}};
    file_.write(reinterpret_cast<const char*>(tensor->bytes().data()),
                static_cast<std::streamsize>(tensor->bytes().size()));
    end_ += static_cast<int64_t>(tensor->bytes().size());
    return absl::OkStatus();
  }
  const Json& description() const { return description_; }
  bool Close() { return static_cast<bool>(file_.flush()); }

 private:
  std::ofstream file_;
  int64_t end_ = 0;
  Json description_ = Json::object();
};

absl::StatusOr<Json> AttributeJson(const onnx::AttributeProto& attribute, const std::string& node) {
  switch (attribute.type()) {
    case onnx::AttributeProto::INT:
      return Json(attribute.i());
    case onnx::AttributeProto::FLOAT:
      return Json(attribute.f());
    case onnx::AttributeProto::STRING:
      return Json(attribute.s());
    case onnx::AttributeProto::INTS:
      return Json(std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
    case onnx::AttributeProto::FLOATS:
      return Json(std::vector<float>(attribute.floats().begin(), attribute.floats().end()));
    default:
      return absl::UnimplementedError(Cat("node '", node, "': attribute '", attribute.name(),
                                          "' is no number, text or list of numbers"));
  }
}

absl::StatusOr<Json> NodeJson(const onnx::NodeProto& node) {
  Json attributes = Json::object();
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    MENDEL_ASSIGN_OR_RETURN(attributes[attribute.name()], AttributeJson(attribute, node.name()));
  }
  return Json{{"op", node.op_type()},
              {"name", node.name()},
              {"inputs", std::vector<std::string>(node.input().begin(), node.input().end())},
              {"outputs", std::vector<std::string>(node.output().begin(), node.output().end())},
              {"attributes", std::move(attributes)}};
}

absl::StatusOr<Json> InputJson(const onnx::ValueInfoProto& input) {
  const auto& type = input.type().tensor_type();
  MENDEL_ASSIGN_OR_RETURN(const DType dtype, DTypeFromOnnx(type.elem_type()));
  std::vector<int64_t> shape;
  for (const auto& dim : type.shape().dim())
    shape.push_back(dim.has_dim_value() ? dim.dim_value() : 1);
  return Json{{"name", input.name()}, {"type", DTypeName(dtype)}, {"shape", shape}};
}

absl::Status Unpack(const onnx::ModelProto& model, const std::string& folder) {
  std::filesystem::create_directories(folder);
  TensorFile tensors((std::filesystem::path(folder) / "tensors.bin").string());
  MENDEL_ASSIGN_OR_RETURN(const int64_t opset, StandardOpset(model.opset_import()));
  Json description = {{"opset", opset},
                      {"inputs", Json::array()},
                      {"outputs", Json::array()},
                      {"nodes", Json::array()}};
  std::set<std::string> stored;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    stored.insert(tensor.name());
    MENDEL_RETURN_IF_ERROR(tensors.Add(tensor.name(), tensor));
  }
  for (const onnx::ValueInfoProto& input : model.graph().input()) {
    if (stored.count(input.name()) > 0) continue;
    MENDEL_ASSIGN_OR_RETURN(Json one, InputJson(input));
    description["inputs"].push_back(std::move(one));
  }
  for (const onnx::ValueInfoProto& output : model.graph().output())
    description["outputs"].push_back(output.name());
  for (const onnx::NodeProto& node : model.graph().node()) {
    if (node.op_type() == "Constant" && node.attribute_size() == 1 &&
        node.attribute(0).type() == onnx::AttributeProto::TENSOR) {
      MENDEL_RETURN_IF_ERROR(tensors.Add(node.output(0), node.attribute(0).t()));
      continue;
    }
    MENDEL_ASSIGN_OR_RETURN(Json one, NodeJson(node));
    description["nodes"].push_back(std::move(one));
  }
  description["tensors"] = tensors.description();
  std::ofstream graph(std::filesystem::path(folder) / "graph.json");
  graph << description.dump(1) << "\n";
  if (!tensors.Close() || !graph.flush())
    return absl::UnavailableError(Cat("cannot write into ", folder));
  return absl::OkStatus();
}

absl::Status Run(const std::string& what, const std::string& from, const std::string& to,
                 uint64_t seed) {
  MENDEL_ASSIGN_OR_RETURN(onnx::ModelProto model, Read(from));
  if (what == "unpack") return Unpack(model, to);
  if (what == "backend") {
    MENDEL_RETURN_IF_ERROR(CutBackEnd(from, model));
    return Write(model, to);
  }
  MENDEL_RETURN_IF_ERROR(what == "strip" ? StripWeights(model) : FillWeights(model, seed));
  return Write(model, to);
}

}  // namespace
}  // namespace mendel

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const bool known = what == "strip" || what == "fill" || what == "unpack" || what == "backend";
  if (!known || argc < 4 || argc > (what == "fill" ? 5 : 4)) {
    std::fprintf(stderr,
                 "usage: model_parts strip MODEL.onnx SHELL.onnx | fill SHELL.onnx MODEL.onnx "
                 "[SEED] | unpack MODEL.onnx FOLDER | "
                 "backend MODEL.onnx PART.onnx\n");
    return 2;
  }
  const absl::Status status =
      mendel::Run(what, argv[2], argv[3], argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1);
  if (status.ok()) return 0;
  std::fprintf(stderr, "model_parts: %s\n", std::string(status.message()).c_str());
  return 1;
}
