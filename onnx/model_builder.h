// Small ONNX models built in code, for tests.
#ifndef MENDEL_ONNX_MODEL_BUILDER_H_
#define MENDEL_ONNX_MODEL_BUILDER_H_

#include <string>
#include <vector>

#include "graph/tensor.h"
#include "onnx/model.pb.h"
#include "onnx/tensor_decode.h"

namespace mendel {

/// Adds to one ModelProto; every method returns the builder or the message just added.
class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 17, int64_t ir = 8) {
    model_.set_ir_version(ir);
    auto& import = *model_.add_opset_import();
    import.set_domain("");
    import.set_version(opset);
    model_.mutable_graph()->set_name("test");
  }

  onnx::ModelProto& model() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  /// Extents written as text are symbolic.
  ModelBuilder& Input(const std::string& name, const std::vector<std::string>& shape,
                      DType dtype = DType::kF32) {
    auto& info = *graph().add_input();
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(DTypeToOnnx(dtype));
    tensor.mutable_shape();
    for (const std::string& extent : shape) {
      auto& dim = *tensor.mutable_shape()->add_dim();
      if (!extent.empty() && extent.find_first_not_of("0123456789") == std::string::npos) {
        dim.set_dim_value(std::stoll(extent));
      } else if (!extent.empty()) {
        dim.set_dim_param(extent);
      }
    }
    return *this;
  }
  ModelBuilder& Output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }
  ModelBuilder& Initializer(const std::string& name, const Tensor& value) {
    SetTensor(value, name, *graph().add_initializer());
    return *this;
  }
  ModelBuilder& Ints(const std::string& name, std::initializer_list<int64_t> values) {
    return Initializer(name, Tensor::Ints(values));
  }

  onnx::NodeProto& Node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs) {
    return AddNode(*graph().mutable_node(), op, inputs, outputs);
  }
  template <class Nodes>
  static onnx::NodeProto& AddNode(Nodes& nodes, const std::string& op,
                                  const std::vector<std::string>& inputs,
                                  const std::vector<std::string>& outputs) {
    onnx::NodeProto& node = *nodes.Add();
    node.set_op_type(op);
    node.set_name("the_" + op);
    for (const std::string& input : inputs) node.add_input(input);
    for (const std::string& output : outputs) node.add_output(output);
    return node;
  }

  static void SetTensor(const Tensor& value, const std::string& name, onnx::TensorProto& proto) {
    proto.set_name(name);
    proto.set_data_type(DTypeToOnnx(value.dtype()));
    for (int64_t extent : value.shape()) proto.add_dims(extent);
    proto.set_raw_data(value.bytes().data(), value.bytes().size());
  }
  static onnx::AttributeProto& Attribute(onnx::NodeProto& node, const std::string& name,
                                         onnx::AttributeProto::AttributeType type) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    return attribute;
  }
  static void Set(onnx::NodeProto& node, const std::string& name, int64_t value) {
    Attribute(node, name, onnx::AttributeProto::INT).set_i(value);
  }
  static void Set(onnx::NodeProto& node, const std::string& name, float value) {
    Attribute(node, name, onnx::AttributeProto::FLOAT).set_f(value);
  }
  static void Set(onnx::NodeProto& node, const std::string& name, const std::string& value) {
    Attribute(node, name, onnx::AttributeProto::STRING).set_s(value);
  }
  static void Set(onnx::NodeProto& node, const std::string& name,
                  const std::vector<int64_t>& values) {
    auto& attribute = Attribute(node, name, onnx::AttributeProto::INTS);
    for (int64_t value : values) attribute.add_ints(value);
  }

  std::string Bytes() const { return model_.SerializeAsString(); }

 private:
  onnx::ModelProto model_;
};

}  // namespace mendel

#endif  // MENDEL_ONNX_MODEL_BUILDER_H_
