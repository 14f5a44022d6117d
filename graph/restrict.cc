#include "graph/restrict.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/rewrite.h"
#include "graph/view_cut.h"

namespace mendel {
namespace {

constexpr size_t kMaxMerged =
    128;  // values wanted in more boxes keep them apart: merging compares all pairs

Box Hull(const Box& a, const Box& b) {
  Box hull = a;
  for (size_t d = 0; d < a.begin.size(); ++d) {
    hull.begin[d] = std::min(a.begin[d], b.begin[d]);
    hull.end[d] = std::max(a.end[d], b.end[d]);
  }
  return hull;
}

bool Covers(const Box& outer, const Box& inner) {
  for (size_t d = 0; d < outer.begin.size(); ++d) {
    if (inner.begin[d] < outer.begin[d] || inner.end[d] > outer.end[d]) return false;
  }
  return true;
}

/// Replaces boxes by their hull while that is no more work than both.
std::vector<Box> MergeBoxes(const std::set<Box>& wanted) {
  std::vector<Box> boxes(wanted.begin(), wanted.end());
  if (boxes.size() > kMaxMerged) return boxes;
  for (bool merged = true; merged;) {
    merged = false;
    for (size_t i = 0; i < boxes.size(); ++i) {
      for (size_t j = boxes.size(); j-- > i + 1;) {
        const Box hull = Hull(boxes[i], boxes[j]);
        if (hull.Volume() > boxes[i].Volume() + boxes[j].Volume()) continue;
        boxes[i] = hull;
        boxes.erase(boxes.begin() + static_cast<int64_t>(j));
        merged = true;
      }
    }
  }
  return boxes;
}

/// True for the attributes of a Slice that yields its operand.
bool KeepsAll(const Attributes& slice, const Shape& shape) {
  const Ints& steps = slice.IntList("steps");
  return slice.IntList("ends") == shape &&
         std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; });
}

/// Walks the graph twice: backwards to learn which boxes of every value are needed, forwards to
/// build them.
class Restrictor {
 public:
  /// `through_cuts`: a Slice of which everything is wanted reads no more than it keeps.
  explicit Restrictor(const Graph& graph, bool through_cuts = false)
      : graph_(graph),
        through_cuts_(through_cuts),
        wanted_(graph.nodes().size()),
        nodes_(graph.nodes().size()) {}

  void Want(ValueId value, const Box& box) {
    wanted_[static_cast<size_t>(value.node)][value.output].insert(box);
  }

  void Plan() {
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      if (wanted_[i].empty()) continue;
      const int32_t id = static_cast<int32_t>(i);
      if (!PlanOutputs(id) && !PlanParts(id)) PlanWhole(id);
    }
  }

  absl::Status Build(GraphBuilder& builder) {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const int32_t id = static_cast<int32_t>(i);
      NodePlan& plan = nodes_[i];
      if (plan.whole || IsInput(graph_.node(id))) {
        MENDEL_RETURN_IF_ERROR(BuildWhole(id, builder));
        continue;
      }
      if (plan.outputs.has_value()) MENDEL_RETURN_IF_ERROR(BuildOutputs(id, builder));
      for (Part& part : plan.parts) {
        auto built = part.cut.has_value() ? BuildView(id, part, builder)
                                          : BuildRestricted(id, part, builder);
        if (!built.ok()) return built.status();
        part.value = *built;
      }
    }
    return absl::OkStatus();
  }

  /// Box `box` of `value`, which was wanted before Plan; after Build has passed the value's node.
  absl::StatusOr<ValueId> Fetch(ValueId value, const Box& box, GraphBuilder& builder) {
    const NodePlan& plan = nodes_[static_cast<size_t>(value.node)];
    if (plan.whole)
      return Slice({plan.built, value.output}, Box::Whole(graph_.type(value).shape), box, builder);
    if (plan.outputs.has_value()) {
      const Box& computed = plan.outputs->outputs[static_cast<size_t>(value.output)];
      return Slice({plan.built, value.output}, computed, box, builder);
    }
    const auto exact = plan.part_of.find(box);
    if (exact != plan.part_of.end()) return plan.parts[exact->second].value;
    for (const Part& part : plan.parts) {
      if (Covers(part.box, box)) return Slice(part.value, part.box, box, builder);
    }
    return InternalError("restricting: box ", BoxString(box), " was not planned");
  }

 private:
  /// One computed box of a node's output 0.
  struct Part {
    Box box;
    Restriction restriction;     // unless the node is a view,
    std::optional<ViewCut> cut;  // then how it is put together
    ValueId value;
  };
  struct NodePlan {
    bool whole = false;
    std::optional<OutputsRestriction> outputs;  // of a node with several outputs
    int32_t built = -1;                         // of a whole node and of one with several outputs
    std::vector<Part> parts;
    std::map<Box, size_t> part_of;  // by Part::box
  };

  void PlanWhole(int32_t id) {
    NodePlan& plan = nodes_[static_cast<size_t>(id)];
    plan.whole = true;
    plan.parts.clear();
    plan.part_of.clear();
    for (ValueId input : graph_.node(id).inputs) Want(input, Box::Whole(graph_.type(input).shape));
  }

  bool IsCut(const Node& node) const {
    return through_cuts_ && node.op->name == "Slice" && NumElements(node.outputs[0]) > 0;
  }

  /// True when boxes of several outputs are computed together.
  bool PlanOutputs(int32_t id) {
    const Node& node = graph_.node(id);
    if (node.op->restrict_outputs == nullptr) return false;
    std::vector<std::optional<Box>> wanted(node.outputs.size());
    for (const auto& [output, boxes] : wanted_[static_cast<size_t>(id)]) {
      std::optional<Box>& all = wanted[static_cast<size_t>(output)];
      for (const Box& box : boxes) all = all.has_value() ? Hull(*all, box) : box;
    }
    NodePlan& plan = nodes_[static_cast<size_t>(id)];
    plan.outputs = WithView(
        graph_, id, [&](const NodeView& view) { return node.op->restrict_outputs(view, wanted); });
    if (!plan.outputs.has_value()) return false;
    for (size_t k = 0; k < node.inputs.size(); ++k) Want(node.inputs[k], plan.outputs->inputs[k]);
    return true;
  }

  /// False when the node must be computed whole.
  bool PlanParts(int32_t id) {
    const Node& node = graph_.node(id);
    const auto& wanted = wanted_[static_cast<size_t>(id)];
    if (wanted.size() != 1 || wanted.begin()->first != 0 || node.inputs.empty()) return false;
    const auto empty = [&](ValueId input) { return NumElements(graph_.type(input)) == 0; };
    if (std::any_of(node.inputs.begin(), node.inputs.end(), empty))
      return false;  // an empty box means "left out"
    NodePlan& plan = nodes_[static_cast<size_t>(id)];
    for (const Box& box : MergeBoxes(wanted.begin()->second)) {
      if (box == Box::Whole(node.outputs[0].shape) && !IsCut(node)) return false;
      std::optional<Part> part = node.op->is_view ? PlanView(id, box) : PlanRestricted(id, box);
      if (!part.has_value()) return false;
      plan.part_of.emplace(part->box, plan.parts.size());
      plan.parts.push_back(*std::move(part));
    }
    for (const Part& part : plan.parts) {
      if (part.cut.has_value()) {
        for (const Box& cell : part.cut->cells) Want(node.inputs[0], cell);
        continue;
      }
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (part.restriction.inputs[k].Volume() > 0)
          Want(node.inputs[k], part.restriction.inputs[k]);
      }
    }
    return true;
  }

  std::optional<Part> PlanView(int32_t id, const Box& box) const {
    const Node& node = graph_.node(id);
    ViewCut cut = CutView(graph_.type(node.inputs[0]).shape, node.outputs[0].shape, box);
    if (cut.covered == Box::Whole(node.outputs[0].shape)) return std::nullopt;
    const Box covered = cut.covered;
    return Part{covered, {}, std::move(cut), {}};
  }

  std::optional<Part> PlanRestricted(int32_t id, const Box& box) const {
    const Node& node = graph_.node(id);
    if (node.op->restrict == nullptr) return std::nullopt;
    std::optional<Restriction> restriction =
        WithView(graph_, id, [&](const NodeView& view) { return node.op->restrict(view, box); });
    if (!restriction.has_value()) return std::nullopt;
    return Part{box, *std::move(restriction), std::nullopt, {}};
  }

  absl::Status BuildWhole(int32_t id, GraphBuilder& builder) {
    const Node& node = graph_.node(id);
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId value,
                              Fetch(input, Box::Whole(graph_.type(input).shape), builder));
      inputs.push_back(value);
    }
    NodePlan& plan = nodes_[static_cast<size_t>(id)];
    plan.whole = true;
    MENDEL_ASSIGN_OR_RETURN(plan.built, builder.CopyNode(node, std::move(inputs)));
    return absl::OkStatus();
  }

  absl::Status BuildOutputs(int32_t id, GraphBuilder& builder) {
    const Node& node = graph_.node(id);
    NodePlan& plan = nodes_[static_cast<size_t>(id)];
    std::vector<ValueId> inputs;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      MENDEL_ASSIGN_OR_RETURN(inputs.emplace_back(),
                              Fetch(node.inputs[k], plan.outputs->inputs[k], builder));
    }
    MENDEL_ASSIGN_OR_RETURN(plan.built, builder.AddNode(node.op->name, std::move(inputs),
                                                        plan.outputs->attrs, node.name));
    return absl::OkStatus();
  }

  absl::StatusOr<ValueId> BuildRestricted(int32_t id, const Part& part, GraphBuilder& builder) {
    const Node& node = graph_.node(id);
    std::vector<ValueId> inputs;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (part.restriction.inputs[k].Volume() == 0) continue;
      MENDEL_ASSIGN_OR_RETURN(const ValueId value,
                              Fetch(node.inputs[k], part.restriction.inputs[k], builder));
      inputs.push_back(value);
    }
    if (IsCut(node) && KeepsAll(part.restriction.attrs, builder.type(inputs[0]).shape))
      return inputs[0];
    MENDEL_ASSIGN_OR_RETURN(
        const int32_t built,
        builder.AddNode(node.op->name, std::move(inputs), part.restriction.attrs, node.name));
    if (builder.node(built).outputs[0].shape != part.box.Extents()) {
      return InternalError("restricting ", node.op->name, " to ", BoxString(part.box), " gave ",
                           TypeString(builder.node(built).outputs[0]));
    }
    return ValueId{built, 0};
  }

  /// Cells of the viewed value, each under the shape it has in the view, concatenated dimension by
  /// dimension.
  absl::StatusOr<ValueId> BuildView(int32_t id, const Part& part, GraphBuilder& builder) {
    const ValueId viewed = graph_.node(id).inputs[0];
    const ViewCut& cut = *part.cut;
    Shape grid;
    for (const auto& dim : cut.ranges) grid.push_back(static_cast<int64_t>(dim.size()));
    std::vector<int64_t> at(grid.size(), 0);
    std::vector<ValueId> values;
    for (const Box& cell : cut.cells) {
      MENDEL_ASSIGN_OR_RETURN(ValueId value, Fetch(viewed, cell, builder));
      Shape shape;
      for (size_t d = 0; d < grid.size(); ++d) {
        const auto [begin, end] = cut.ranges[d][static_cast<size_t>(at[d])];
        shape.push_back(end - begin);
      }
      if (builder.type(value).shape != shape) {
        MENDEL_ASSIGN_OR_RETURN(value, builder.Add("Reshape", {value}, {{"shape", shape}}));
      }
      values.push_back(value);
      NextIndex(grid, at);
    }
    for (size_t d = grid.size(); d-- > 0;) {
      if (grid[d] == 1) continue;
      std::vector<ValueId> joined;
      for (size_t first = 0; first < values.size(); first += static_cast<size_t>(grid[d])) {
        const auto begin = values.begin() + static_cast<int64_t>(first);
        MENDEL_ASSIGN_OR_RETURN(const ValueId value,
                                builder.Add("Concat", std::vector<ValueId>(begin, begin + grid[d]),
                                            {{"axis", static_cast<int64_t>(d)}}));
        joined.push_back(value);
      }
      values = std::move(joined);
    }
    return values[0];
  }

  /// Box `box` of the value whose box `outer` is `value`; both in the coordinates of the whole.
  absl::StatusOr<ValueId> Slice(ValueId value, const Box& outer, const Box& box,
                                GraphBuilder& builder) {
    if (outer == box) return value;
    const auto [it, fresh] = slices_.try_emplace({value, box});
    if (!fresh) return it->second;
    Ints starts, ends;
    for (size_t d = 0; d < box.begin.size(); ++d) {
      starts.push_back(box.begin[d] - outer.begin[d]);
      ends.push_back(box.end[d] - outer.begin[d]);
    }
    Attributes attrs{{"starts", starts}, {"ends", ends}, {"steps", Ints(starts.size(), 1)}};
    MENDEL_ASSIGN_OR_RETURN(it->second, builder.Add("Slice", {value}, std::move(attrs)));
    return it->second;
  }

  const Graph& graph_;
  const bool through_cuts_;
  std::vector<std::map<int32_t, std::set<Box>>> wanted_;  // by node, then output
  std::vector<NodePlan> nodes_;
  std::map<std::pair<ValueId, Box>, ValueId> slices_;
};

}  // namespace

absl::StatusOr<Graph> RestrictToBox(const Graph& graph, int output, const Box& box) {
  const OutputBox wanted{output, box};
  return RestrictToBoxes(graph, std::span(&wanted, 1));
}

absl::StatusOr<Graph> RestrictToBoxes(const Graph& graph, std::span<const OutputBox> boxes) {
  Restrictor restrictor(graph);
  for (const auto& [output, box] : boxes) {
    if (output < 0 || static_cast<size_t>(output) >= graph.outputs().size())
      return InvalidInput("there is no output ", output);
    const ValueId value = graph.outputs()[static_cast<size_t>(output)].value;
    const Box whole = Box::Whole(graph.type(value).shape);
    if (box.begin.size() != whole.end.size() || box.end.size() != whole.end.size() ||
        box.Volume() <= 0 || !Covers(whole, box)) {
      return InvalidInput("box ", BoxString(box), " of output ", output, " is empty or outside ",
                          ShapeString(whole.end));
    }
    restrictor.Want(value, box);
  }
  restrictor.Plan();
  GraphBuilder builder(graph.name());
  MENDEL_RETURN_IF_ERROR(restrictor.Build(builder));
  for (size_t k = 0; k < boxes.size(); ++k) {
    const ValueId value = graph.outputs()[static_cast<size_t>(boxes[k].output)].value;
    MENDEL_ASSIGN_OR_RETURN(const ValueId part, restrictor.Fetch(value, boxes[k].box, builder));
    builder.Output(boxes.size() == 1 ? graph.outputs()[static_cast<size_t>(boxes[k].output)].name
                                     : Cat("box", k),
                   part);
  }
  return builder.Build();
}

absl::StatusOr<Graph> ComputeNeeded(const Graph& graph) {
  const auto whole = [&](const GraphOutput& output) {
    return Box::Whole(graph.type(output.value).shape);
  };
  Restrictor restrictor(graph, /*through_cuts=*/true);
  for (const GraphOutput& output : graph.outputs()) restrictor.Want(output.value, whole(output));
  restrictor.Plan();
  GraphBuilder builder(graph.name());
  MENDEL_RETURN_IF_ERROR(restrictor.Build(builder));
  for (const GraphOutput& output : graph.outputs()) {
    MENDEL_ASSIGN_OR_RETURN(const ValueId value,
                            restrictor.Fetch(output.value, whole(output), builder));
    builder.Output(output.name, value);
  }
  MENDEL_ASSIGN_OR_RETURN(Graph needed, builder.Build());
  if (RunTimeFlops(needed) < RunTimeFlops(graph)) return needed;
  return graph;
}

}  // namespace mendel
