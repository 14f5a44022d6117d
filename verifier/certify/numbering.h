// Both graphs in one space of value numbers: equal number, equal value, by congruence
// (docs/verifier.md, "Cut points").
//
// Two nodes are congruent when operator, all attributes, operand types and operand numbers are
// equal. Keys are compared in full, so that sharing a number is a proof and not a probability.
// Views have the number of what they view.
#ifndef MENDEL_VERIFIER_CERTIFY_NUMBERING_H_
#define MENDEL_VERIFIER_CERTIFY_NUMBERING_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

enum class Side : uint8_t { kOriginal, kPlan };

/// A value of one of the two graphs.
struct Origin {
  Side side = Side::kOriginal;
  ValueId value;
  auto operator<=>(const Origin&) const = default;
};

/// The node that defines one or more numbers.
struct NumberedNode {
  const Node* node = nullptr;
  std::vector<TensorType> input_types;
  std::vector<int32_t> inputs;  ///< numbers to read; a merged number's representative
  bool in_original = false;
  bool in_plan = false;
};
inline NodeView View(const NumberedNode& node) {
  return {node.input_types, node.node->attrs, node.node->outputs};
}

/// One number: output `output` of node `node` of Numbering::nodes.
struct NumberedValue {
  int32_t node = 0;
  int32_t output = 0;
  Origin origin;  ///< where the number was met first
};

/// To be proven: the number `member` equals the number `representative`, element for element.
struct Claim {
  int32_t representative = 0;
  int32_t member = 0;
  Origin merge;        ///< the merge that makes the claim necessary (outputs: the plan's value)
  std::string output;  ///< name of the graph output that they are, or empty
};

/// Keys of Constant nodes, which are costly to make (content hashes, one a stored tensor however
/// many graphs share it). Keeps pointers to bytes of graphs that must outlive it.
class ConstantKeys {
 public:
  explicit ConstantKeys(WeightMode weights) : weights_(weights) {}
  std::string Of(const Node& node);

 private:
  WeightMode weights_;
  std::map<std::pair<const void*, std::string>, std::string> hashes_;  // by address and type
};

struct Numbering {
  std::vector<NumberedNode> nodes;
  std::vector<NumberedValue> values;
  /// One a merge that congruence does not already give, then one an output whose numbers still
  /// differ. All claims together with congruence imply that the graphs are equal.
  std::vector<Claim> claims;
  /// Nodes of the plan, Inputs and Constants apart, that are nodes of the original.
  int64_t shared_nodes = 0;
  std::map<Origin, int32_t> number_of;
  std::vector<int32_t> original_outputs;  ///< numbers of the outputs of both graphs
  std::vector<int32_t> plan_outputs;

  const NumberedNode& NodeOf(int32_t number) const {
    return nodes[static_cast<size_t>(values[static_cast<size_t>(number)].node)];
  }
  const TensorType& TypeOf(int32_t number) const {
    return NodeOf(number)
        .node->outputs[static_cast<size_t>(values[static_cast<size_t>(number)].output)];
  }
  bool IsShared(int32_t number) const {
    return NodeOf(number).in_original && NodeOf(number).in_plan;
  }
};

/// "[0, 3]", the position of element `flat`.
std::string ElementString(const Shape& shape, int64_t flat);

/// GraphHash (verifier.h) with the content hashes that `constants` knows already.
std::string HashGraph(const Graph& graph, ConstantKeys& constants);

/// `merges`: values taken to equal a value of the original that stands earlier (or, for values of
/// the plan, anywhere). Readers of the former read the latter, and each is claimed. Outputs are
/// matched by name, which both graphs must have.
Numbering NumberValues(const Graph& original, const Graph& plan,
                       const std::map<Origin, Origin>& merges, ConstantKeys& constants);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_CERTIFY_NUMBERING_H_
