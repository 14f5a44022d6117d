// The state of one export, and the table of operators whose ONNX form is not the language's.
#ifndef MENDEL_ONNX_EXPORTER_H_
#define MENDEL_ONNX_EXPORTER_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph.h"
#include "onnx/model.pb.h"

namespace mendel {

/// Emits ONNX nodes into one GraphProto.
class Exporter {
 public:
  Exporter(onnx::GraphProto& proto, int opset) : proto_(proto), opset_(opset) {}
  /// `proto` is a graph within that of `outer`, whose names it may not repeat.
  Exporter(onnx::GraphProto& proto, Exporter& outer)
      : proto_(proto), opset_(outer.opset_), outer_(&outer) {}

  int opset() const { return opset_; }
  onnx::GraphProto& proto() { return proto_; }

  /// `wanted`, or with a suffix when it is taken.
  std::string UniqueName(const std::string& wanted);
  /// An initializer that holds `tensor`; large ones are collected for external data.
  std::string AddTensor(const Tensor& tensor, const std::string& wanted);
  std::string AddInts(const Ints& values) {
    return AddTensor(Tensor::FromInts({DType::kI64, {static_cast<int64_t>(values.size())}}, values),
                     "ints");
  }
  /// A node that reads `inputs` and writes `outputs`.
  onnx::NodeProto& AddNode(std::string_view op, const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs);

  /// Tensors of initializers, in their order, to be stored when the layout of the file is known.
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  onnx::GraphProto& proto_;
  int opset_;
  Exporter* outer_ = nullptr;
  std::set<std::string> names_;
  std::vector<Tensor> tensors_;
};

/// One node of the language with the names of its values.
struct ExportedNode {
  const Graph& graph;
  const Node& node;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;

  const TensorType& InputType(size_t k) const { return graph.type(node.inputs[k]); }
};

void SetType(onnx::ValueInfoProto& info, const std::string& name, const TensorType& type);
void SetAttribute(onnx::NodeProto& proto, const std::string& name, int64_t value);
void SetAttribute(onnx::NodeProto& proto, const std::string& name, const Ints& values);
/// Any kind that ONNX has; Internal for tensors and boxes.
absl::Status SetAttribute(onnx::NodeProto& proto, const std::string& name, const AttrValue& value);

/// Writes one node, by its entry in the table of special forms or else one to one.
absl::Status ExportNode(const ExportedNode& node, Exporter& exporter);

/// Writes a Loop as Scan. Its body reads the invariants from the graph around it.
absl::Status ExportLoop(const ExportedNode& node, Exporter& exporter);

/// True when `node` has no form in opset 17.
bool NeedsNewestOpset(const Graph& graph, const Node& node);

}  // namespace mendel

#endif  // MENDEL_ONNX_EXPORTER_H_
