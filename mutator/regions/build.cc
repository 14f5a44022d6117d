#include <algorithm>
#include <map>
#include <utility>

#include "base/status.h"
#include "graph/emitter.h"
#include "graph/rewrite.h"
#include "mutator/regions/plan.h"
#include "mutator/regions/select.h"

namespace mendel {
namespace {

/// Forwards over the whole graph.
class PlanBuilder {
 public:
  PlanBuilder(const Graph& graph, const RegionPlan& plan)
      : graph_(graph), plan_(plan), constant_(ConstantExpressions(graph)), e_(graph.name()) {}

  absl::StatusOr<Graph> Run() {
    const std::vector<ValueId> inputs = e_.InputsOf(graph_);
    for (size_t k = 0; k < inputs.size(); ++k) where_[{graph_.inputs()[k], 0}] = inputs[k];
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const int32_t id = static_cast<int32_t>(i);
      if (!IsInput(graph_.node(id)) && IsNeeded(id)) BuildNode(id);
    }
    for (const GraphOutput& output : graph_.outputs())
      e_.Output(output.name, Fetch(output.value, WholeGrid(graph_.type(output.value).shape), 0));
    return e_.Finish();
  }

 private:
  const ValuePlan& Plan(ValueId value) const {
    return plan_.values[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
  }
  bool IsNeeded(int32_t id) const {
    const auto& values = plan_.values[static_cast<size_t>(id)];
    return constant_[static_cast<size_t>(id)] ||
           std::any_of(values.begin(), values.end(), [](const auto& v) { return v.is_needed; });
  }

  void BuildNode(int32_t id) {
    const Node& node = graph_.node(id);
    if (constant_[static_cast<size_t>(id)] || !plan_.changed[static_cast<size_t>(id)]) {
      std::vector<ValueId> inputs;
      for (ValueId input : node.inputs)
        inputs.push_back(Fetch(input, WholeGrid(graph_.type(input).shape), 0));
      const std::vector<ValueId> outputs = CopyNode(e_, node, std::move(inputs));
      for (size_t k = 0; k < outputs.size(); ++k)
        where_[{id, static_cast<int32_t>(k)}] = outputs[k];
      return;
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId value{id, static_cast<int32_t>(k)};
      if (!Plan(value).is_needed) continue;
      where_[value] = BuildPart(node, *Plan(value).part);
      if (IsBuilt(where_[value]) &&
          e_.shape(where_[value]) != ExtentsOf(Plan(value).part->computed)) {
        e_.Fail(InternalError("a part of ", node.op->name, " has shape ",
                              ShapeString(e_.shape(where_[value])), ", not ",
                              ShapeString(ExtentsOf(Plan(value).part->computed))));
      }
    }
  }

  ValueId BuildPart(const Node& node, const GridRestriction& part) {
    const Shape shape = ExtentsOf(part.computed);
    if (part.moved >= 0) {
      const size_t source = static_cast<size_t>(part.moved);
      const ValueId value = Fetch(node.inputs[source], part.inputs[source], part.fill);
      return e_.shape(value) == shape ? value : e_.Reshape(value, shape);
    }
    std::vector<ValueId> inputs;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (NumElements(ExtentsOf(part.inputs[k])) == 0) continue;
      inputs.push_back(Fetch(node.inputs[k], part.inputs[k], part.fill));
    }
    if (inputs.size() == 1 && node.op->max_inputs == kVariadic && e_.shape(inputs[0]) == shape)
      return inputs[0];
    Node copy = node;
    copy.attrs = part.attrs;
    return CopyNode(e_, copy, std::move(inputs))[static_cast<size_t>(part.output)];
  }

  ValueId Fetch(ValueId value, const Grid& read, double fill) {
    if (!IsBuilt(where_[value])) return {};
    const ValuePlan& plan = Plan(value);
    const Shape& shape = graph_.type(value).shape;
    const Grid there = plan.part.has_value() ? plan.part->computed : WholeGrid(shape);
    const ValueId built = where_[value];
    if (there == read) return built;
    const auto [it, fresh] = fetched_.try_emplace({value, {read, fill}});
    if (!fresh) return it->second;
    std::vector<std::vector<int64_t>> lists;
    for (size_t d = 0; d < shape.size(); ++d) {
      std::vector<int64_t> index(static_cast<size_t>(shape[d]), kAbsent), list;
      for (int64_t i = 0; i < there[d].size(); ++i) {
        if (there[d][i] != kAbsent) index[static_cast<size_t>(there[d][i])] = i;
      }
      for (int64_t i = 0; i < read[d].size(); ++i) {
        const int64_t at = read[d][i];
        int64_t found = at == kAbsent ? kAbsent : index[static_cast<size_t>(at)];
        if (at != kAbsent && found == kAbsent)
          found = index[static_cast<size_t>(FirstOf(plan.classes[d], at))];
        if (at != kAbsent && found == kAbsent)
          e_.Fail(InternalError("position ", at, " of dimension ", d, " was not planned"));
        list.push_back(found);
      }
      lists.push_back(std::move(list));
    }
    it->second = SelectPositions(e_, built, lists, fill);
    return it->second;
  }

  const Graph& graph_;
  const RegionPlan& plan_;
  std::vector<bool> constant_;
  Emitter e_;
  std::map<ValueId, ValueId> where_;
  std::map<std::pair<ValueId, std::pair<Grid, double>>, ValueId> fetched_;
};

}  // namespace

absl::StatusOr<Graph> BuildPlan(const Graph& graph, const RegionPlan& plan) {
  return PlanBuilder(graph, plan).Run();
}

}  // namespace mendel
