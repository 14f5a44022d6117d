// The language: an immutable graph of nodes over statically shaped tensors.
//
// Every value is an output of a node. Graph inputs are nodes of the operator Input, stored tensors
// nodes of the operator Constant. Nodes stand in a topological order. Graphs are cheap to copy
// (they share their nodes) and safe to read from any thread; a rewrite builds a new graph
// (GraphBuilder, rewrite.h).
#ifndef MENDEL_GRAPH_GRAPH_H_
#define MENDEL_GRAPH_GRAPH_H_

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/attributes.h"
#include "graph/op_definition.h"
#include "graph/types.h"

namespace mendel {

/// Output `output` of node number `node` in one particular graph.
struct ValueId {
  int32_t node = -1;
  int32_t output = 0;
  auto operator<=>(const ValueId&) const = default;
};

struct Node {
  const OpDefinition* op = nullptr;
  std::vector<ValueId> inputs;
  Attributes attrs;
  std::vector<TensorType> outputs;
  /// For messages and reports only; never part of the meaning. For Input and Constant see InputName
  /// and SymbolName.
  std::string name;
};

struct GraphOutput {
  std::string name;
  ValueId value;
  bool operator==(const GraphOutput&) const = default;
};

class Graph {
 public:
  Graph() : data_(std::make_shared<const Data>()) {}

  const std::string& name() const { return data_->name; }
  const std::vector<Node>& nodes() const { return data_->nodes; }
  const Node& node(int32_t id) const { return data_->nodes[static_cast<size_t>(id)]; }
  /// Input nodes in declaration order.
  const std::vector<int32_t>& inputs() const { return data_->inputs; }
  const std::vector<GraphOutput>& outputs() const { return data_->outputs; }
  const TensorType& type(ValueId value) const {
    return data_->nodes[static_cast<size_t>(value.node)].outputs[static_cast<size_t>(value.output)];
  }
  std::vector<TensorType> InputTypes(int32_t node) const;
  /// Nodes that read any output of `node`, ascending, without repetition.
  const std::vector<int32_t>& users(int32_t node) const {
    return data_->users[static_cast<size_t>(node)];
  }
  /// True when some graph output is a value of `node`.
  bool IsOutput(int32_t node) const { return data_->is_output[static_cast<size_t>(node)]; }
  /// The one node that reads `node`; -1 for none, several, or a node with a graph output.
  int32_t OnlyUser(int32_t node) const {
    return users(node).size() == 1 && !IsOutput(node) ? users(node)[0] : -1;
  }
  /// For every node: true when it depends on no Input (a weight or a computation on weights only).
  const std::vector<bool>& constant() const { return data_->constant; }

 private:
  friend class GraphBuilder;
  struct Data {
    std::string name;
    std::vector<Node> nodes;
    std::vector<int32_t> inputs;
    std::vector<GraphOutput> outputs;
    std::vector<std::vector<int32_t>> users;
    std::vector<bool> is_output, constant;
  };
  explicit Graph(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

/// Calls `use(NodeView)` for one node, keeping the input types alive meanwhile.
template <class Use>
auto WithView(const Graph& graph, int32_t node, Use&& use) {
  const std::vector<TensorType> inputs = graph.InputTypes(node);
  return use(NodeView{inputs, graph.node(node).attrs, graph.node(node).outputs});
}

bool IsInput(const Node& node);
bool IsConstant(const Node& node);
/// Name of an Input node.
const std::string& InputName(const Node& node);
/// Stored elements of a Constant node.
const Tensor& ConstantValue(const Node& node);
/// A Constant's symbol: float constants with a symbol are one random tensor to the verifier, the
/// same in every graph that uses the name. Empty: a literal, which is exactly its stored value (all
/// integral constants are literals).
const std::string& SymbolName(const Node& node);

/// Builds one graph. Every Add checks arity, attributes and types and infers the outputs, so that a
/// built graph is valid. Constants with equal symbol and literals with equal value are shared. Not
/// thread-safe.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name = "") { data_.name = std::move(name); }

  ValueId Input(std::string name, TensorType type);
  /// `symbol` empty: a literal. Two constants with the same symbol must have the same value (CHECK
  /// on type).
  ValueId Constant(Tensor value, std::string symbol = "");
  /// f32 scalar or shape-of-ints conveniences are Constant(Tensor::...).
  /// One-output node.
  absl::StatusOr<ValueId> Add(std::string_view op, std::vector<ValueId> inputs,
                              Attributes attrs = {}, std::string name = "");
  /// Any number of outputs; returns the node.
  absl::StatusOr<int32_t> AddNode(std::string_view op, std::vector<ValueId> inputs,
                                  Attributes attrs = {}, std::string name = "");
  /// Copies `node` of another graph with its inputs replaced (types may differ: outputs are
  /// inferred anew).
  absl::StatusOr<int32_t> CopyNode(const Node& node, std::vector<ValueId> inputs);
  void Output(std::string name, ValueId value) {
    data_.outputs.push_back({std::move(name), value});
  }

  const TensorType& type(ValueId value) const {
    return data_.nodes[static_cast<size_t>(value.node)].outputs[static_cast<size_t>(value.output)];
  }
  const Node& node(int32_t id) const { return data_.nodes[static_cast<size_t>(id)]; }

  /// The finished graph without nodes that no output needs (Input nodes stay). The builder is
  /// spent.
  absl::StatusOr<Graph> Build();

 private:
  Graph::Data data_;
  std::map<std::string, int32_t, std::less<>> symbols_;
  std::map<std::string, std::vector<int32_t>, std::less<>> literals_;  // by LiteralKey
};

/// Re-derives every type and checks order, arity, attributes, limits (rank, element counts) and
/// names. Run after every step.
absl::Status CheckGraph(const Graph& graph);

}  // namespace mendel

#endif  // MENDEL_GRAPH_GRAPH_H_
