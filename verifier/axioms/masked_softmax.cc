#include "verifier/axioms/masked_softmax.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/evaluate.h"

namespace mendel {
namespace {

/// Elements of a value whose masked positions are followed.
constexpr int64_t kMostElements = int64_t{1} << 25;
constexpr double kMasked = -std::numeric_limits<double>::infinity();
constexpr std::array<std::string_view, 7> kMoves = {"Concat", "Expand", "Gather",   "Reshape",
                                                    "Slice",  "Tile",   "Transpose"};

/// Removes masks: finds the elements that are -inf because of constants, and the value without
/// them.
class MaskRemover {
 public:
  MaskRemover(const Graph& graph, WeightMode weights)
      : graph_(graph), weights_(weights), builder_(graph.name()) {}

  absl::StatusOr<Graph> Run(int* count) {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      FollowMask(static_cast<int32_t>(i));
      if (node.op->name == "Softmax" && IsReplaceable(node)) {
        MENDEL_ASSIGN_OR_RETURN(const ValueId replaced, Replacement(node));
        copies_.push_back(replaced.node);
        if (count != nullptr) ++*count;
        continue;
      }
      MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder_.CopyNode(node, Mapped(node.inputs)));
      copies_.push_back(copy);
    }
    for (const GraphOutput& output : graph_.outputs())
      builder_.Output(output.name, Mapped({output.value})[0]);
    return builder_.Build();
  }

 private:
  std::vector<ValueId> Mapped(const std::vector<ValueId>& values) const {
    std::vector<ValueId> mapped;
    for (const ValueId value : values)
      mapped.push_back({copies_[static_cast<size_t>(value.node)], value.output});
    return mapped;
  }

  const HostValue* MaskOf(ValueId value) const {
    const auto mask = masks_.find(value.node);
    return mask != masks_.end() && value.output == 0 ? &mask->second : nullptr;
  }

  /// Finds a mask: -inf where the value is so whatever the inputs are, 0 elsewhere; nothing where
  /// it has no such element.
  void FollowMask(int32_t id) {
    const Node& node = graph_.node(id);
    if (node.outputs.size() != 1 || !IsFloat(node.outputs[0].dtype) ||
        NumElements(node.outputs[0]) > kMostElements)
      return;
    if (IsConstant(node)) return FollowConstant(id);
    const bool masked = std::any_of(node.inputs.begin(), node.inputs.end(),
                                    [&](ValueId input) { return MaskOf(input) != nullptr; });
    if (!masked || !Passes(node)) return;
    std::vector<TensorType> types;
    std::vector<HostValue> values;
    for (const ValueId input : node.inputs) {
      types.push_back(graph_.type(input));
      values.push_back(Followed(input));
    }
    std::vector<const HostValue*> operands;
    for (const HostValue& value : values) operands.push_back(&value);
    masks_[id] = EvaluateNode(*node.op, NodeView{types, node.attrs, node.outputs}, operands)[0];
  }

  void FollowConstant(int32_t id) {
    HostValue value = HostValue::FromTensor(ConstantValue(graph_.node(id)));
    const bool symbolic = weights_ == WeightMode::kSymbolic && !SymbolName(graph_.node(id)).empty();
    bool masked = false;
    for (double& scalar : value.scalars) {
      if (scalar != kMasked && (!std::isfinite(scalar) || (symbolic && scalar != 0))) return;
      masked = masked || scalar == kMasked;
      scalar = scalar == kMasked ? kMasked : 0;
    }
    if (masked) masks_[id] = std::move(value);
  }

  /// A sum is -inf where one of its terms is; moves and choices by a constant keep elements.
  bool Passes(const Node& node) const {
    const std::string_view op = node.op->name;
    if (op == "Add") return true;
    if (op == "Where" || op == "Gather")
      return Stored(node.inputs[op == "Where" ? 0 : 1]).has_value();
    return Moves(op);
  }

  static bool Moves(std::string_view op) {
    return std::find(kMoves.begin(), kMoves.end(), op) != kMoves.end();
  }

  /// A stored value, or one that moves make of stored ones.
  std::optional<HostValue> Stored(ValueId value) const {
    const Node& node = graph_.node(value.node);
    if (IsConstant(node)) return HostValue::FromTensor(ConstantValue(node));
    if (!Moves(node.op->name) || value.output != 0 || NumElements(node.outputs[0]) > kMostElements)
      return std::nullopt;
    std::vector<TensorType> types;
    std::vector<HostValue> values;
    for (const ValueId input : node.inputs) {
      std::optional<HostValue> operand = Stored(input);
      if (!operand.has_value()) return std::nullopt;
      types.push_back(graph_.type(input));
      values.push_back(*std::move(operand));
    }
    std::vector<const HostValue*> operands;
    for (const HostValue& operand : values) operands.push_back(&operand);
    return EvaluateNode(*node.op, NodeView{types, node.attrs, node.outputs}, operands)[0];
  }

  /// An operand of a node that passes masks: its mask, 0 where it has none, indices as they are.
  HostValue Followed(ValueId value) const {
    if (const HostValue* mask = MaskOf(value)) return *mask;
    if (!IsFloat(graph_.type(value).dtype)) {
      if (std::optional<HostValue> stored = Stored(value)) return *std::move(stored);
    }
    HostValue zeros;
    zeros.type = graph_.type(value);
    const size_t size = static_cast<size_t>(NumElements(zeros.type));
    if (IsFloat(zeros.type.dtype)) {
      zeros.scalars.assign(size, 0);
    } else {
      zeros.integers.assign(size, 0);
    }
    return zeros;
  }

  /// True when every row keeps a score.
  bool IsReplaceable(const Node& node) const {
    const HostValue* mask = MaskOf(node.inputs[0]);
    if (mask == nullptr) return false;
    const Shape& shape = mask->type.shape;
    const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
    int64_t inner = 1;
    for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
    const int64_t length = shape[axis];
    std::vector<bool> kept(mask->scalars.size() /
                           static_cast<size_t>(std::max<int64_t>(length, 1)));
    for (size_t i = 0; i < mask->scalars.size(); ++i) {
      const int64_t flat = static_cast<int64_t>(i);
      const int64_t row = flat / (length * inner) * inner + flat % inner;
      if (mask->scalars[i] == 0) kept[static_cast<size_t>(row)] = true;
    }
    return std::all_of(kept.begin(), kept.end(), [](bool keeps) { return keeps; });
  }

  absl::StatusOr<ValueId> Replacement(const Node& node) {
    const ValueId scores = node.inputs[0];
    MENDEL_ASSIGN_OR_RETURN(const ValueId finite, Finite(scores));
    MENDEL_ASSIGN_OR_RETURN(const ValueId e, builder_.Add("Exp", {finite}));
    const ValueId kept = builder_.Constant(KeptScores(*MaskOf(scores)));
    MENDEL_ASSIGN_OR_RETURN(const ValueId terms, builder_.Add("Mul", {e, kept}));
    MENDEL_ASSIGN_OR_RETURN(const ValueId sum, builder_.Add("ReduceSum", {terms},
                                                            {{"axes", Ints{node.attrs.Int("axis")}},
                                                             {"keepdims", int64_t{1}}}));
    return builder_.Add("Div", {terms, sum}, {}, node.name);
  }

  /// 1 where a score counts and 0 elsewhere; leading axes along which it is the same have extent 1.
  static Tensor KeptScores(const HostValue& mask) {
    HostValue kept = mask;
    for (double& scalar : kept.scalars) scalar = scalar == 0 ? 1 : 0;
    for (size_t d = 0; d < kept.type.shape.size(); ++d) {
      const size_t part = kept.scalars.size() / static_cast<size_t>(kept.type.shape[d]);
      bool same = true;
      for (size_t i = part; i < kept.scalars.size() && same; ++i)
        same = kept.scalars[i] == kept.scalars[i - part];
      if (!same) break;
      kept.scalars.resize(part);
      kept.type.shape[d] = 1;
    }
    return kept.ToTensor();
  }

  /// The value with a finite number in place of every masked element.
  absl::StatusOr<ValueId> Finite(ValueId value) {
    if (MaskOf(value) == nullptr) return Mapped({value})[0];
    const auto known = finite_.find(value.node);
    if (known != finite_.end()) return known->second;
    const Node& node = graph_.node(value.node);
    ValueId result;
    if (IsConstant(node)) {
      HostValue numbers = HostValue::FromTensor(ConstantValue(node));
      for (double& scalar : numbers.scalars) scalar = scalar == kMasked ? 0 : scalar;
      result = builder_.Constant(numbers.ToTensor());
    } else {
      std::vector<ValueId> inputs;
      for (const ValueId input : node.inputs) {
        MENDEL_ASSIGN_OR_RETURN(const ValueId finite, Finite(input));
        inputs.push_back(finite);
      }
      const std::optional<ValueId> only = OnlySummand(node, inputs);
      if (only.has_value()) {
        result = *only;
      } else {
        MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder_.CopyNode(node, std::move(inputs)));
        result = {copy, 0};
      }
    }
    finite_[value.node] = result;
    return result;
  }

  /// x of x + 0.
  std::optional<ValueId> OnlySummand(const Node& node, const std::vector<ValueId>& inputs) const {
    if (node.op->name != "Add") return std::nullopt;
    for (const size_t k : {0, 1}) {
      const Node& other = builder_.node(inputs[1 - k].node);
      if (!IsConstant(other) || builder_.type(inputs[k]) != node.outputs[0]) continue;
      const HostValue numbers = HostValue::FromTensor(ConstantValue(other));
      if (std::all_of(numbers.scalars.begin(), numbers.scalars.end(),
                      [](double scalar) { return scalar == 0; }))
        return inputs[k];
    }
    return std::nullopt;
  }

  const Graph& graph_;
  const WeightMode weights_;
  GraphBuilder builder_;
  std::vector<int32_t> copies_;         ///< by node
  std::map<int32_t, HostValue> masks_;  ///< masks of values with masked elements
  std::map<int32_t, ValueId> finite_;
};

}  // namespace

absl::StatusOr<Graph> WithoutMaskedScores(const Graph& graph, WeightMode weights, int* count) {
  const bool has_softmax = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                       [](const Node& node) { return node.op->name == "Softmax"; });
  if (!has_softmax) return graph;
  return MaskRemover(graph, weights).Run(count);
}

}  // namespace mendel
