// A mutation place is where one fault of graph_mutations.h goes. Here are also the faults that
// change what a node stores: attributes and numbers.
#ifndef MENDEL_TESTS_MUTATION_PLACE_H_
#define MENDEL_TESTS_MUTATION_PLACE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "graph/graph.h"
#include "tests/graph_edit.h"

namespace mendel {

/// The replacement of the node's outputs; empty where there is nothing to change.
using MutatedValues = std::vector<ValueId>;

/// One node while it is copied into the new graph.
struct MutationPlace {
  Rng& rng;
  GraphBuilder& builder;
  const NodeSite& site;

  bool Is(std::string_view op) const { return site.node.op->name == op; }
  const TensorType& type(ValueId value) const { return builder.type(value); }
  /// The node again with other operands or attributes; empty when the builder refuses.
  MutatedValues Again(std::vector<ValueId> inputs, Attributes attrs) const {
    const auto node = builder.AddNode(site.node.op->name, std::move(inputs), std::move(attrs));
    if (!node.ok()) return {};
    MutatedValues outputs;
    for (size_t k = 0; k < builder.node(*node).outputs.size(); ++k)
      outputs.push_back({*node, static_cast<int32_t>(k)});
    return outputs;
  }
  MutatedValues WithOperand(size_t k, std::optional<ValueId> value) const {
    if (!value.has_value()) return {};
    std::vector<ValueId> operands = site.inputs;
    operands[k] = *value;
    return Again(operands, site.node.attrs);
  }
  std::optional<ValueId> Add(std::string_view op, std::vector<ValueId> inputs,
                             Attributes attrs = {}) const {
    return TryAdd(builder, op, std::move(inputs), std::move(attrs));
  }
};

/// One attribute of the group `kind`. Both ends of a slice move together half of the time.
MutatedValues ChangeAttribute(const MutationPlace& at, std::string_view kind);
/// One element of a float constant, by much or by little; a weight becomes another weight.
MutatedValues Coefficient(const MutationPlace& at);
/// One element of an integer constant.
MutatedValues StoredIndex(const MutationPlace& at);
/// The same numbers under another name: a different weight for a verifier of programs.
MutatedValues OtherWeight(const MutationPlace& at);

}  // namespace mendel

#endif  // MENDEL_TESTS_MUTATION_PLACE_H_
