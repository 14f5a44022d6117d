#include "mutator/regions/split_parts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/emitter.h"
#include "graph/rewrite.h"
#include "mutator/regions/classes.h"
#include "mutator/regions/select.h"
#include "mutator/regions/zeros.h"

namespace mendel {
namespace {

/// A linear operator, the operand that is a concatenation along the axis that it sums over, perhaps
/// reshaped, and the axis of its weight that goes with it.
struct LinearOfConcat {
  size_t operand = 0;
  size_t weight = 1;
  int64_t weight_axis = 0;
  int32_t concat = 0;
  /// Reshapes between, the first to be applied first, and the axis in the result of each.
  std::vector<std::pair<int32_t, int64_t>> views;
};

/// The axis of a Reshape's input that is `axis` of its output, with the same extent and as many
/// elements before it; nullopt where there is none.
std::optional<int64_t> AxisBefore(const Shape& from, const Shape& to, int64_t axis) {
  const auto before = [](const Shape& shape, int64_t d) {
    return NumElements(Shape(shape.begin(), shape.begin() + d));
  };
  for (int64_t d = 0; d < static_cast<int64_t>(from.size()); ++d) {
    if (from[static_cast<size_t>(d)] == to[static_cast<size_t>(axis)] &&
        before(from, d) == before(to, axis))
      return d;
  }
  return std::nullopt;
}

/// Follows `value` through Reshapes to a Concat along what becomes its `axis`; false where it is
/// none.
bool FindConcat(const Graph& graph, ValueId value, int64_t axis, LinearOfConcat& match) {
  for (;;) {
    const Node& node = graph.node(value.node);
    if (node.op->name == "Concat") {
      match.concat = value.node;
      std::reverse(match.views.begin(), match.views.end());
      return node.attrs.Int("axis") == axis;
    }
    if (node.op->name != "Reshape") return false;
    match.views.emplace_back(value.node, axis);
    const auto before = AxisBefore(graph.type(node.inputs[0]).shape, node.outputs[0].shape, axis);
    if (!before.has_value()) return false;
    axis = *before;
    value = node.inputs[0];
  }
}

std::optional<LinearOfConcat> MatchLinear(const Graph& graph, const Node& node, size_t operand) {
  if (node.op->name != "MatMul" && (node.op->name != "Conv" || operand != 0)) return std::nullopt;
  const std::vector<SumAxes> sums = SumsOf(graph, node);
  if (sums.empty()) return std::nullopt;
  LinearOfConcat match;
  match.operand = operand;
  match.weight = 1 - operand;
  match.weight_axis = static_cast<int64_t>(sums[0][match.weight].second);
  const int64_t axis = static_cast<int64_t>(sums[0][operand].second);
  if (!FindConcat(graph, node.inputs[operand], axis, match)) return std::nullopt;
  return match;
}

class Splitter {
 public:
  Splitter(const Graph& graph, bool origins)
      : graph_(graph),
        origins_(origins),
        constant_(ConstantExpressions(graph)),
        classes_(RepeatedElements(graph)),
        e_(graph.name()) {}

  absl::StatusOr<Graph> Run() {
    const std::vector<ValueId> inputs = e_.InputsOf(graph_);
    for (size_t k = 0; k < inputs.size(); ++k) where_[{graph_.inputs()[k], 0}] = inputs[k];
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const int32_t id = static_cast<int32_t>(i);
      if (IsInput(graph_.node(id))) continue;
      name_ = origins_ ? std::to_string(id) : graph_.node(id).name;
      if (!Split(id)) Copy(id);
    }
    for (const GraphOutput& output : graph_.outputs()) e_.Output(output.name, where_[output.value]);
    return e_.Finish();
  }

 private:
  void Copy(int32_t id) {
    Node node = graph_.node(id);
    if (!IsConstant(node)) node.name = name_;
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(where_[input]);
    const std::vector<ValueId> outputs = CopyNode(e_, node, std::move(inputs));
    for (size_t k = 0; k < outputs.size(); ++k) where_[{id, static_cast<int32_t>(k)}] = outputs[k];
  }

  /// True where `part` has fewer different elements than the whole along some axis but `axis`.
  bool RepeatsMore(ValueId part, ValueId whole, int64_t axis) const {
    const Shape& shape = graph_.type(part).shape;
    const auto classes = [&](ValueId value, size_t d) {
      return CountClasses(
          classes_[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)][d],
          graph_.type(value).shape[d]);
    };
    for (size_t d = 0; d < shape.size(); ++d) {
      if (static_cast<int64_t>(d) != axis && classes(part, d) < classes(whole, d)) return true;
    }
    return false;
  }

  bool Split(int32_t id) {
    if (constant_[static_cast<size_t>(id)]) return false;
    const Node& node = graph_.node(id);
    for (size_t operand = 0; operand < 2; ++operand) {
      const auto match = MatchLinear(graph_, node, operand);
      if (match.has_value() && SplitAt(id, *match)) return true;
    }
    return false;
  }

  /// The operands in groups: one for those that repeat no more than the whole, one for all weights,
  /// whose term is computed when a plan is loaded, and one for each other.
  bool SplitAt(int32_t id, const LinearOfConcat& match) {
    const Node& node = graph_.node(id);
    const ValueId whole{match.concat, 0};
    const Node& concat = graph_.node(match.concat);
    const int64_t axis = concat.attrs.Int("axis");
    std::vector<std::vector<size_t>> groups(2);
    for (size_t k = 0; k < concat.inputs.size(); ++k) {
      if (constant_[static_cast<size_t>(concat.inputs[k].node)]) {
        groups[1].push_back(k);
      } else if (RepeatsMore(concat.inputs[k], whole, axis)) {
        groups.push_back({k});
      } else {
        groups[0].push_back(k);
      }
    }
    std::erase_if(groups, [](const auto& group) { return group.empty(); });
    if (groups.size() < 2) return false;
    std::optional<ValueId> sum;
    for (const std::vector<size_t>& group : groups) {
      const ValueId term = Term(node, concat, match, group, !sum.has_value());
      sum = sum.has_value() ? e_.Op("Add", {*sum, term}, {}, name_) : term;
    }
    where_[{id, 0}] = *sum;
    return true;
  }

  /// The operator on some of the concatenated operands; a bias goes with the first term.
  ValueId Term(const Node& node, const Node& concat, const LinearOfConcat& match,
               const std::vector<size_t>& group, bool first) {
    std::vector<ValueId> parts, weights;
    const int64_t axis = concat.attrs.Int("axis");
    int64_t begin = 0, extent = 0;
    for (size_t k = 0; k < concat.inputs.size(); ++k) {
      const int64_t end = begin + graph_.type(concat.inputs[k]).shape[static_cast<size_t>(axis)];
      if (std::find(group.begin(), group.end(), k) != group.end()) {
        parts.push_back(where_[concat.inputs[k]]);
        extent += end - begin;
        weights.push_back(
            e_.Slice(where_[node.inputs[match.weight]], match.weight_axis, begin, end));
      }
      begin = end;
    }
    const auto join = [&](std::vector<ValueId> values, int64_t axis) {
      return values.size() == 1 ? values[0]
                                : e_.Op("Concat", std::move(values), {{"axis", axis}}, name_);
    };
    std::vector<ValueId> inputs(2);
    inputs[match.operand] = join(std::move(parts), axis);
    for (const auto& [view, at] : match.views) {
      Shape shape = graph_.node(view).outputs[0].shape;
      shape[static_cast<size_t>(at)] = extent;
      inputs[match.operand] = e_.Op("Reshape", {inputs[match.operand]}, {{"shape", shape}}, name_);
    }
    inputs[match.weight] = join(std::move(weights), match.weight_axis);
    if (first && node.inputs.size() > 2) inputs.push_back(where_[node.inputs[2]]);
    return e_.Op(node.op->name, std::move(inputs), node.attrs, name_);
  }

  const Graph& graph_;
  bool origins_;
  std::vector<bool> constant_;
  std::vector<std::vector<ValueClasses>> classes_;
  Emitter e_;
  std::map<ValueId, ValueId> where_;
  std::string name_;
};

}  // namespace

absl::StatusOr<Graph> SplitRepeatedParts(const Graph& graph, bool origins) {
  return Splitter(graph, origins).Run();
}

}  // namespace mendel
