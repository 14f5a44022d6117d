#include "verifier/regions/probe_evaluation.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "base/status.h"

namespace mendel {
namespace {

bool IsSinglePick(const AccessPattern& pattern) {
  if (pattern.combine != AccessPattern::Combine::kSum || pattern.inputs.size() != 1) return false;
  if (std::any_of(pattern.breaks.begin(), pattern.breaks.end(),
                  [](const auto& list) { return !list.empty(); }))
    return false;
  const auto& dims = pattern.inputs[0].dims;
  return std::all_of(dims.begin(), dims.end(),
                     [](const DimAccess& dim) { return !dim.whole && dim.count == 1; });
}

}  // namespace

ProbeSchedule::ProbeSchedule(const Graph& graph)
    : graph_(graph),
      picks_(graph.nodes().size()),
      uses_(graph.nodes().size(), 0),
      input_rank_(graph.nodes().size(), 0) {
  for (size_t k = 0; k < graph.inputs().size(); ++k)
    input_rank_[static_cast<size_t>(graph.inputs()[k])] = static_cast<int64_t>(k);
  std::vector<int> level(graph.nodes().size(), 0);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    if (IsTerminal(id)) continue;
    order_.push_back(id);
    picks_[i] = PickOf(id);
    for (ValueId value : graph.node(id).inputs) {
      level[i] = std::max(level[i], level[static_cast<size_t>(value.node)] + 1);
      if (picks_[i].node < 0) ++uses_[static_cast<size_t>(value.node)];
    }
  }
  for (const GraphOutput& output : graph.outputs()) ++uses_[static_cast<size_t>(output.value.node)];
  // A part of a weight is drawn just before it is first read.
  std::vector<int> earliest(graph.nodes().size(), std::numeric_limits<int>::max());
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    for (ValueId value : graph.nodes()[i].inputs) {
      int& first = earliest[static_cast<size_t>(value.node)];
      first = std::min(first, level[i] - 1);
    }
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (picks_[i].node >= 0 && earliest[i] != std::numeric_limits<int>::max())
      level[i] = earliest[i];
  }
  std::stable_sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
    return level[static_cast<size_t>(a)] < level[static_cast<size_t>(b)];
  });
  MeasurePeak();
}

ProbeSchedule::Pick ProbeSchedule::PickOf(int32_t id) const {
  const Node& node = graph_.node(id);
  if (node.inputs.size() != 1 || !IsTerminal(node.inputs[0].node) || node.outputs.size() != 1)
    return {};
  const Node& operand = graph_.node(node.inputs[0].node);
  if (IsConstant(operand) && !IsFloat(operand.outputs[0].dtype)) return {};
  if (node.op->access == nullptr || node.op->index_inputs != 0 || !SelectsElements(*node.op))
    return {};
  const std::optional<AccessPattern> pattern = WithView(graph_, id, node.op->access);
  if (!pattern.has_value() || !IsSinglePick(*pattern)) return {};
  Pick pick{node.inputs[0].node, {}};
  const Shape& from = operand.outputs[0].shape;
  const Shape& shape = node.outputs[0].shape;
  std::array<int64_t, kMaxRank> storage{};
  const std::span<int64_t> at(storage.data(), shape.size());
  for (int64_t k = NumElements(shape); k > 0; --k) {
    int64_t flat = 0;
    for (size_t d = 0; d < from.size(); ++d) {
      const DimAccess& dim = pattern->inputs[0].dims[d];
      int64_t position = dim.offset;
      for (size_t j = 0; j < dim.coefficients.size(); ++j) position += dim.coefficients[j] * at[j];
      if (position < 0 || position >= from[d]) return {};  // padding
      flat = flat * from[d] + position;
    }
    pick.positions.push_back(flat);
    NextIndex(shape, at);
  }
  return pick;
}

int64_t ProbeSchedule::BytesOf(int32_t id) const {
  int64_t elements = 0;
  for (const TensorType& type : graph_.node(id).outputs) elements += NumElements(type);
  return elements * static_cast<int64_t>(sizeof(Fp));
}

void ProbeSchedule::MeasurePeak() {
  std::vector<int> uses = uses_;
  std::vector<bool> alive(graph_.nodes().size(), false);
  int64_t bytes = 0;
  const auto bring = [&](int32_t id) {
    if (alive[static_cast<size_t>(id)]) return;
    alive[static_cast<size_t>(id)] = true;
    bytes += BytesOf(id);
  };
  for (int32_t id : order_) {
    const bool pick = picks_[static_cast<size_t>(id)].node >= 0;
    for (ValueId value : graph_.node(id).inputs) {
      if (!pick) bring(value.node);
    }
    bring(id);
    peak_bytes_ = std::max(peak_bytes_, bytes);
    for (ValueId value : graph_.node(id).inputs) {
      if (!pick && --uses[static_cast<size_t>(value.node)] == 0) bytes -= BytesOf(value.node);
    }
  }
}

FieldValue ProbeSchedule::DrawTerminal(const FieldEvaluator& evaluator, int32_t id) const {
  const Node& node = graph_.node(id);
  if (IsConstant(node)) return evaluator.Constant(node);
  return evaluator.Symbol("position", Cat(input_rank_[static_cast<size_t>(id)]),
                          NumElements(node.outputs[0]));
}

FieldValue ProbeSchedule::DrawPick(const FieldEvaluator& evaluator, const Pick& pick) const {
  const Node& node = graph_.node(pick.node);
  if (IsConstant(node)) return evaluator.ConstantAt(node, pick.positions);
  return evaluator.SymbolAt("position", Cat(input_rank_[static_cast<size_t>(pick.node)]),
                            pick.positions);
}

absl::Status ProbeSchedule::Step(const FieldEvaluator& evaluator, int32_t id,
                                 Values& values) const {
  const Node& node = graph_.node(id);
  std::vector<FieldValue>& results = values[static_cast<size_t>(id)];
  const Pick& pick = picks_[static_cast<size_t>(id)];
  if (pick.node >= 0) {
    results = {DrawPick(evaluator, pick)};
    return absl::OkStatus();
  }
  std::vector<const FieldValue*> operands;
  for (ValueId value : node.inputs) {
    std::vector<FieldValue>& operand = values[static_cast<size_t>(value.node)];
    if (operand.empty()) operand = {DrawTerminal(evaluator, value.node)};
    operands.push_back(&operand[static_cast<size_t>(value.output)]);
  }
  WithView(graph_, id, [&](const NodeView& view) {
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      results.push_back(evaluator.Apply(*node.op, view, operands, static_cast<int>(k)));
    }
  });
  if (!evaluator.zero_denominator()) return absl::OkStatus();
  return absl::AbortedError(Cat("a denominator is zero in node ", id, " (", node.op->name, ")"));
}

void ProbeSchedule::Release(int32_t id, std::vector<int>& uses, Values& values) const {
  if (picks_[static_cast<size_t>(id)].node >= 0) return;
  for (ValueId value : graph_.node(id).inputs) {
    if (--uses[static_cast<size_t>(value.node)] == 0) values[static_cast<size_t>(value.node)] = {};
  }
}

absl::StatusOr<std::vector<std::vector<Fp>>> ProbeSchedule::Evaluate(
    const Draw& draw, WeightMode weights, const Deadline& deadline) const {
  const FieldEvaluator evaluator(draw, weights);
  Values values(graph_.nodes().size());
  std::vector<int> uses = uses_;
  for (int32_t id : order_) {
    if (deadline.Passed()) return absl::DeadlineExceededError("localizing: out of time");
    MENDEL_RETURN_IF_ERROR(Step(evaluator, id, values));
    Release(id, uses, values);
  }
  const FieldScope scope(evaluator.field());
  std::vector<std::vector<Fp>> outputs;
  for (const GraphOutput& output : graph_.outputs()) {
    std::vector<FieldValue>& source = values[static_cast<size_t>(output.value.node)];
    if (source.empty()) source = {DrawTerminal(evaluator, output.value.node)};
    const FieldValue& value = source[static_cast<size_t>(output.value.output)];
    std::vector<Fp> elements(static_cast<size_t>(value.size()));
    for (size_t k = 0; k < elements.size(); ++k) elements[k] = value.At(static_cast<int64_t>(k));
    outputs.push_back(std::move(elements));
  }
  return outputs;
}

}  // namespace mendel
