#include "mutator/regions/plan.h"

#include <algorithm>
#include <utility>

#include "graph/grid.h"
#include "graph/rewrite.h"
#include "mutator/regions/zeros.h"

namespace mendel {
namespace {

Positions Ascending(const Positions& positions) {
  if (positions.IsRange() && positions.step() > 0) return positions;
  return UnionOf(positions, {});
}

/// Backwards over the whole graph.
class Planner {
 public:
  Planner(const Graph& graph, Known known)
      : graph_(graph), repeats_(known == Known::kRepeats), constant_(ConstantExpressions(graph)) {
    if (known == Known::kZeros) zeros_ = ZeroElements(graph);
    const auto classes = repeats_ ? RepeatedElements(graph)
                                  : std::vector<std::vector<ValueClasses>>(graph.nodes().size());
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      auto& values = plan_.values.emplace_back(graph.nodes()[i].outputs.size());
      for (size_t k = 0; k < values.size(); ++k) {
        if (repeats_) values[k].classes = classes[i][k];
        values[k].classes.resize(graph.nodes()[i].outputs[k].shape.size());
      }
    }
  }

  RegionPlan Run() {
    for (const GraphOutput& output : graph_.outputs())
      Need(output.value, WholeGrid(graph_.type(output.value).shape));
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      if (!constant_[i] && !IsInput(graph_.nodes()[i])) PlanNode(static_cast<int32_t>(i));
    }
    MarkChanged();
    return std::move(plan_);
  }

 private:
  ValuePlan& Plan(ValueId value) {
    return plan_.values[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
  }

  void Need(ValueId value, const Grid& grid) {
    ValuePlan& plan = Plan(value);
    if (!plan.is_needed) plan.needed.assign(grid.size(), {});
    plan.is_needed = true;
    const Shape& shape = graph_.type(value).shape;
    for (size_t d = 0; d < grid.size(); ++d) {
      if (plan.needed[d].IsWhole(shape[d])) continue;
      plan.needed[d] = grid[d].IsWhole(shape[d]) || plan.needed[d].size() == 0
                           ? Ascending(grid[d])
                           : UnionOf(plan.needed[d], grid[d]);
    }
  }

  void PlanNode(int32_t id) {
    const Node& node = graph_.node(id);
    std::vector<int32_t> outputs;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (Plan({id, static_cast<int32_t>(k)}).is_needed) outputs.push_back(static_cast<int32_t>(k));
    }
    std::vector<GridRestriction> parts;
    for (int32_t output : outputs) {
      auto part = PartOf(id, output);
      if (!part.has_value() || (outputs.size() > 1 && part->moved < 0)) break;
      parts.push_back(*std::move(part));
    }
    if (parts.size() < outputs.size()) {
      for (ValueId input : node.inputs) Need(input, WholeGrid(graph_.type(input).shape));
      return;
    }
    for (size_t k = 0; k < outputs.size(); ++k) {
      for (size_t input = 0; input < node.inputs.size(); ++input) {
        const bool read = parts[k].moved < 0 || parts[k].moved == static_cast<int>(input);
        if (read && (NumElements(ExtentsOf(parts[k].inputs[input])) > 0))
          Need(node.inputs[input], parts[k].inputs[input]);
      }
      Plan({id, outputs[k]}).part = std::move(parts[k]);
    }
  }

  std::optional<GridRestriction> PartOf(int32_t id, int32_t output) {
    const Node& node = graph_.node(id);
    const auto empty = [&](const TensorType& type) { return NumElements(type) == 0; };
    const std::vector<TensorType> types = graph_.InputTypes(id);
    if (std::any_of(types.begin(), types.end(), empty) ||
        std::any_of(node.outputs.begin(), node.outputs.end(), empty))
      return std::nullopt;
    const ValuePlan& value = Plan({id, output});
    const Shape& shape = graph_.type({id, output}).shape;
    Grid firsts;
    for (size_t d = 0; d < shape.size(); ++d)
      firsts.push_back(FirstsOf(value.classes[d], value.needed[d]));
    const std::vector<const Tensor*> stored = StoredInputs(graph_, id);
    const NodeView view{types, node.attrs, node.outputs};
    const auto restrict = [&](const Grid& wanted) {
      return RestrictToGrid(*node.op, {view, stored, output, wanted});
    };
    // An operator that only repeats elements stays where all of them are read.
    if (firsts != value.needed && IsWhole(value.needed, shape)) {
      const auto few = restrict(firsts);
      const auto all = restrict(value.needed);
      if (all.has_value() && few.has_value() && (few->moved >= 0 || all->moved >= 0)) return all;
    }
    auto part = restrict(firsts);
    if (part.has_value() && repeats_ && part->moved < 0) Collapse(node, types, *part);
    if (part.has_value() && !zeros_.empty() && part->moved < 0) LeaveOutZeros(node, types, *part);
    return part;
  }

  /// Sums of products run over positions at which no operand is zero, and over one at least.
  void LeaveOutZeros(const Node& node, const std::vector<TensorType>& types,
                     GridRestriction& part) {
    for (const SumAxes& sum : SumsOf(graph_, node)) {
      const auto [first, first_axis] = sum[0];
      const int64_t extent = types[first].shape[first_axis];
      std::vector<bool> zero(static_cast<size_t>(extent), false);
      bool whole = true;
      for (const auto& [k, axis] : sum) {
        whole = whole && part.inputs[k][axis].IsWhole(extent);
        const ValueId input = node.inputs[k];
        const AxisZeros& zeros =
            zeros_[static_cast<size_t>(input.node)][static_cast<size_t>(input.output)][axis];
        for (size_t p = 0; p < zeros.size(); ++p) zero[p] = zero[p] || zeros[p];
      }
      std::vector<int64_t> live;
      for (int64_t p = 0; p < extent; ++p) {
        if (!zero[static_cast<size_t>(p)]) live.push_back(p);
      }
      if (live.empty()) live.push_back(0);
      if (!whole || static_cast<int64_t>(live.size()) == extent) continue;
      for (const auto& [k, axis] : sum) part.inputs[k][axis] = Positions::List(live);
    }
  }

  /// Operands that are the same along an axis are broadcast, where the operator can; means and
  /// extremes over equally repeated elements take each once.
  void Collapse(const Node& node, const std::vector<TensorType>& types, GridRestriction& part) {
    const GridStructure* structure = FindGridStructure(node.op->name);
    const bool ignores_repeats = structure != nullptr && structure->ignores_even_repeats;
    std::vector<TensorType> read;
    for (size_t k = 0; k < types.size(); ++k)
      read.push_back({types[k].dtype, ExtentsOf(part.inputs[k])});
    for (size_t k = 0; k < types.size(); ++k) {
      for (size_t d = 0; d < types[k].shape.size(); ++d) {
        const AxisClasses& classes = Plan(node.inputs[k]).classes[d];
        Positions& positions = part.inputs[k][d];
        if (classes.empty() || positions.size() < 2) continue;
        Positions fewer = FirstsOf(classes, positions);
        const bool single = fewer.size() == 1 && positions.ToList().front() != kAbsent &&
                            UnionOf(positions, {}).size() > 0;
        const bool even =
            ignores_repeats && positions.IsWhole(types[k].shape[d]) && EvenlyRepeated(classes);
        if (!single && !even) continue;
        if (HasAbsent(positions)) continue;
        std::vector<TensorType> small = read;
        small[k].shape[d] = fewer.size();
        const auto inferred = node.op->infer(small, part.attrs);
        if (!inferred.ok() ||
            (*inferred)[static_cast<size_t>(part.output)].shape != ExtentsOf(part.computed))
          continue;
        if (!even && (node.inputs.size() < 2 || !IsLinked(node, types, k, d))) continue;
        read = std::move(small);
        positions = std::move(fewer);
      }
    }
  }

  /// True where positions along axis `d` of operand `k` are those of an axis of the output. An
  /// operand of extent one is then broadcast. Other operators may accept one, too, as a convolution
  /// a kernel with fewer taps, but mean something else.
  static bool IsLinked(const Node& node, const std::vector<TensorType>& types, size_t k, size_t d) {
    const NodeView view{types, node.attrs, node.outputs};
    for (size_t axis = 0; axis < node.outputs[0].shape.size(); ++axis) {
      const auto links = FreeAxis(*node.op, view, axis);
      if (links.has_value() && (*links)[k] == static_cast<int>(d)) return true;
    }
    return false;
  }

  static bool HasAbsent(const Positions& positions) {
    if (positions.IsRange()) return false;
    const std::vector<int64_t> list = positions.ToList();
    return std::find(list.begin(), list.end(), kAbsent) != list.end();
  }

  static bool EvenlyRepeated(const AxisClasses& classes) {
    std::vector<int64_t> counts(classes.size(), 0);
    for (int64_t first : classes) ++counts[static_cast<size_t>(first)];
    std::erase(counts, 0);
    return std::all_of(counts.begin(), counts.end(), [&](int64_t n) { return n == counts[0]; });
  }

  bool IsKeptWhole(ValueId value) {
    const ValuePlan& plan = Plan(value);
    return !plan.part.has_value() || IsWhole(plan.part->computed, graph_.type(value).shape);
  }

  /// Nodes that compute and read everything, now that it is known what there is, stay as they are.
  void MarkChanged() {
    plan_.changed.assign(graph_.nodes().size(), false);
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const int32_t id = static_cast<int32_t>(i);
      if (constant_[i] || IsInput(graph_.node(id))) continue;
      bool changed = false;
      for (size_t k = 0; k < plan_.values[i].size(); ++k) {
        const ValueId value{id, static_cast<int32_t>(k)};
        changed = changed || (Plan(value).is_needed && IsChanged(value));
      }
      plan_.changed[i] = changed;
      if (changed) continue;
      for (ValuePlan& value : plan_.values[i]) value.part.reset();
    }
  }

  bool IsChanged(ValueId value) {
    const ValuePlan& plan = Plan(value);
    if (!plan.part.has_value()) return false;
    if (!IsKeptWhole(value)) return true;
    const Node& node = graph_.node(value.node);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueId input = node.inputs[k];
      if (!IsKeptWhole(input)) return true;
      const Shape& shape = graph_.type(input).shape;
      const Shape read = ExtentsOf(plan.part->inputs[k]);
      const bool fewer = NumElements(read) < NumElements(shape);
      // Weights are cut for nothing; what is there already is not.
      if (fewer && plan.part->moved < 0 && constant_[static_cast<size_t>(input.node)]) return true;
    }
    return false;
  }

  const Graph& graph_;
  bool repeats_;
  std::vector<bool> constant_;
  std::vector<std::vector<ValueZeros>> zeros_;  ///< of Known::kZeros
  RegionPlan plan_;
};

}  // namespace

RegionPlan PlanRegions(const Graph& graph, Known known) { return Planner(graph, known).Run(); }

}  // namespace mendel
