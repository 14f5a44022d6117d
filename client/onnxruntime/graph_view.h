// A graph of ONNX Runtime, read into plain structures.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_GRAPH_VIEW_H_
#define MENDEL_CLIENT_ONNXRUNTIME_GRAPH_VIEW_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/onnxruntime/runtime_api.h"
#include "onnx/model.pb.h"

namespace mendel::ort {

struct ViewValue {
  std::string name;
  int type = 0;  ///< ONNX's number of the element type; 0: no tensor
  bool has_shape = false;
  std::vector<int64_t> shape;        ///< negative: symbolic
  std::vector<std::string> symbols;  ///< names of symbolic dimensions, which may be empty
  bool constant = false;
  std::string_view data;  ///< of a constant; ONNX Runtime owns it
  bool graph_output = false;
};

struct ViewNode {
  const Node* handle = nullptr;
  onnx::NodeProto proto;      ///< name, operator, domain and attributes, without inputs and outputs
  std::vector<int> inputs;    ///< numbers of values; negative: absent
  std::vector<int> outputs;   ///< as `inputs`
  std::vector<int> implicit;  ///< values that only its subgraphs read
  bool subgraphs = false;
};

/// Nodes are in topological order.
struct GraphView {
  std::vector<ViewValue> values;
  std::vector<ViewNode> nodes;
  std::vector<std::pair<std::string, int64_t>> operator_sets;  ///< domain and version
  int64_t ir_version = 0;
  std::vector<int> outputs;
};

/// Reads `graph`, which must outlive the view.
absl::StatusOr<GraphView> ReadGraph(const RuntimeApi& api, const Graph* graph);

/// The names of the inputs and outputs of `node`, "" where one is absent.
struct NodeInterface {
  std::vector<std::string> inputs, outputs;
};
absl::StatusOr<NodeInterface> ReadInterface(const RuntimeApi& api, const Node* node);

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_GRAPH_VIEW_H_
