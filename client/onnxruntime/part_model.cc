#include "client/onnxruntime/part_model.h"

#include <map>
#include <set>

namespace mendel::ort {
namespace {

constexpr size_t kSmallBytes = 4096;
constexpr size_t kMostBytes = 1'900'000'000;  // protobuf's limit is 2^31 - 1

class Writer {
 public:
  Writer(const GraphView& view, Constants constants) : view_(view), constants_(constants) {}

  absl::StatusOr<std::string> Write(const Part& part, const Boundary& boundary) {
    model_.set_ir_version(view_.ir_version);
    model_.set_producer_name("onnxruntime-ep-mendel");
    for (const auto& [domain, version] : view_.operator_sets) {
      onnx::OperatorSetIdProto& set = *model_.add_opset_import();
      set.set_domain(domain);
      set.set_version(version);
    }
    graph_.set_name("part");
    Name("in", boundary.inputs);
    Name("out", boundary.outputs);
    for (const int input : boundary.inputs) Declare(input, *graph_.add_input());
    for (const int output : boundary.outputs) Declare(output, *graph_.add_output());
    for (const int n : part) WriteNode(n);
    if (constant_bytes_ > kMostBytes) {
      return absl::ResourceExhaustedError(
          Cat("its constants have ", constant_bytes_, " bytes, more than one ONNX model can have"));
    }
    return model_.SerializeAsString();
  }

 private:
  void Name(const std::string& prefix, const std::vector<int>& values) {
    for (size_t k = 0; k < values.size(); ++k) names_[values[k]] = Cat(prefix, k);
  }

  /// Inner values have names of their own, so that none is that of an input or output.
  const std::string& NameOf(int value) {
    return names_.try_emplace(value, Cat("v", value)).first->second;
  }

  void Declare(int number, onnx::ValueInfoProto& declared) {
    const ViewValue& value = view_.values[static_cast<size_t>(number)];
    declared.set_name(NameOf(number));
    onnx::TypeProto::Tensor& tensor = *declared.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(value.type);
    if (!value.has_shape) return;
    onnx::TensorShapeProto& shape = *tensor.mutable_shape();
    for (size_t k = 0; k < value.shape.size(); ++k) {
      auto& dim = *shape.add_dim();
      if (value.shape[k] >= 0) {
        dim.set_dim_value(value.shape[k]);
      } else if (!value.symbols[k].empty()) {
        dim.set_dim_param(value.symbols[k]);
      }
    }
  }

  void WriteNode(int n) {
    const ViewNode& node = view_.nodes[static_cast<size_t>(n)];
    onnx::NodeProto& proto = *graph_.add_node();
    proto = node.proto;
    if (constants_ == Constants::kSmall) proto.set_name(Cat(n));
    for (const int input : node.inputs) {
      if (input >= 0) WriteConstant(input);
      proto.add_input(input < 0 ? "" : NameOf(input));
    }
    for (const int output : node.outputs) proto.add_output(output < 0 ? "" : NameOf(output));
  }

  void WriteConstant(int number) {
    const ViewValue& value = view_.values[static_cast<size_t>(number)];
    if (!value.constant || !written_.insert(number).second) return;
    if (constants_ == Constants::kSmall && value.data.size() > kSmallBytes) {
      Declare(number, *graph_.add_input());
      return;
    }
    constant_bytes_ += value.data.size();
    if (constant_bytes_ > kMostBytes) return;
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(NameOf(number));
    tensor.set_data_type(value.type);
    for (const int64_t size : value.shape) tensor.add_dims(size);
    tensor.set_raw_data(std::string(value.data));
  }

  const GraphView& view_;
  Constants constants_;
  onnx::ModelProto model_;
  onnx::GraphProto& graph_ = *model_.mutable_graph();
  std::map<int, std::string> names_;
  std::set<int> written_;
  size_t constant_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::string> PartModel(const GraphView& view, const Part& part,
                                      const Boundary& boundary, Constants constants) {
  return Writer(view, constants).Write(part, boundary);
}

}  // namespace mendel::ort
