#include "mutator/layout.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/status.h"
#include "mutator/parallel.h"
#include "mutator/region.h"
#include "mutator/space.h"

namespace mendel {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool InSpace(Move move) { return move == Move::kBatchToSpace || move == Move::kResiduesStacked; }
bool Residues(Move move) {
  return move == Move::kResiduesToBatch || move == Move::kResiduesStacked;
}

Shape SpaceOf(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

/// Zeros that a window reads behind the input.
int64_t ReachBehind(const Window& window, int64_t outputs) {
  return std::max<int64_t>(0, window.Position(outputs - 1, window.kernel - 1) - (window.input - 1));
}

/// Positions of the finest value that one position of a node's value stands for along dimension
/// `d`, an entry a node (weights: 0); strides multiply against the edges.
absl::StatusOr<Shape> StepsAlong(const Graph& region, size_t d) {
  struct Fraction {
    int64_t over = 0, under = 1;
  };
  std::vector<Fraction> steps(region.nodes().size());
  const auto stride = [&](int32_t id) {
    return IsWindowNode(region, id) ? WindowsOfNode(region, id)[d].stride : 1;
  };
  std::vector<int32_t> open;
  const auto meet = [&](int32_t id, Fraction step) {
    const int64_t common = std::gcd(step.over, step.under);
    step = {step.over / common, step.under / common};
    Fraction& known = steps[static_cast<size_t>(id)];
    if (known.over != 0) return known.over == step.over && known.under == step.under;
    known = step;
    open.push_back(id);
    return true;
  };
  for (size_t start = 0; start < steps.size(); ++start) {
    if (steps[start].over != 0 || IsWeight(region, {static_cast<int32_t>(start), 0})) continue;
    meet(static_cast<int32_t>(start), {1, 1});
    while (!open.empty()) {
      const int32_t id = open.back();
      open.pop_back();
      const Fraction here = steps[static_cast<size_t>(id)];
      bool same = true;
      for (ValueId value : region.node(id).inputs)
        same = same &&
               (IsWeight(region, value) || meet(value.node, {here.over * stride(id), here.under}));
      for (int32_t user : region.users(id))
        same = same && meet(user, {here.over, here.under * stride(user)});
      if (!same) return absl::FailedPreconditionError("branches of different strides meet");
    }
  }
  int64_t under = 1, over = 0;
  for (const Fraction& step : steps) under = std::lcm(under, step.under);
  for (const Fraction& step : steps) over = std::gcd(over, step.over * (under / step.under));
  Shape whole;
  for (const Fraction& step : steps)
    whole.push_back(step.over * (under / step.under) / std::max<int64_t>(1, over));
  return whole;
}

/// StepsAlong all dimensions, an entry a node (weights: empty).
absl::StatusOr<std::vector<Shape>> Steps(const Graph& region, size_t rank) {
  std::vector<Shape> steps(region.nodes().size());
  for (size_t d = 0; d < rank; ++d) {
    MENDEL_ASSIGN_OR_RETURN(const Shape along, StepsAlong(region, d));
    for (size_t id = 0; id < along.size(); ++id) {
      if (along[id] > 0) steps[id].push_back(along[id]);
    }
  }
  return steps;
}

/// The window over slots: `total` positions in, `wanted` out.
absl::StatusOr<Window> OverSlots(Window window, const Layout& layout, size_t d, int64_t total,
                                 int64_t wanted, bool pool) {
  if (Residues(layout.move)) {
    const int64_t factor = layout.factors[d];
    if (window.stride != 1 || window.pad_begin % factor != 0 ||
        (window.kernel > 1 && window.dilation % factor != 0)) {
      return absl::FailedPreconditionError("stride, dilation or padding does not fit the residues");
    }
    window.pad_begin /= factor;
    if (window.kernel > 1) window.dilation /= factor;
  }
  window.input = total;
  const int64_t end = window.stride * (wanted - 1) + window.dilation * (window.kernel - 1) + 1 -
                      total - window.pad_begin;
  window.pad_end = std::max<int64_t>(0, end);
  const bool fits = end > -window.stride && window.OutputExtent() == wanted;
  if (!fits || (pool && window.pad_end >= window.dilation * (window.kernel - 1) + 1)) {
    return absl::FailedPreconditionError("the window does not fill its slots");
  }
  return window;
}

/// Extent of the smallest slot of a value that stands for one step.
int64_t UnitOf(const Graph& region, int32_t id, const Layout& layout, size_t d, int64_t step) {
  const int64_t extent = region.node(id).outputs[0].shape[d + 2];
  if (layout.move != Move::kBatchToSpace) return CeilDiv(extent, step * layout.factors[d]);
  int64_t gap = 0;
  for (int32_t user : layout.gaps ? region.users(id) : std::vector<int32_t>()) {
    if (!IsWindowNode(region, user)) continue;
    const Window window = WindowsOfNode(region, user)[d];
    gap = std::max(
        {gap, window.pad_begin, ReachBehind(window, region.node(user).outputs[0].shape[d + 2])});
  }
  return CeilDiv(extent + gap, step);
}

/// `x` in the layout: dimensions padded to whole slots, then moved.
ValueId IntoLayout(Emitter& e, ValueId x, const Layout& layout, const Shape& slots) {
  const bool stacks_batch = layout.move == Move::kBatchToSpace;
  for (size_t d = 0; d < layout.factors.size(); ++d) {
    if (layout.factors[d] == 1) continue;
    const int64_t dim = static_cast<int64_t>(d + 2);
    const int64_t wanted = stacks_batch ? slots[d] : slots[d] * layout.factors[d];
    x = e.PadZero(x, dim, 0, wanted - e.shape(x)[d + 2]);
  }
  const int64_t images = NumElements(layout.factors);
  switch (layout.move) {
    case Move::kBatchToSpace:
      return BatchToSpace(
          e, e.PadZero(x, 0, 0, CeilDiv(e.shape(x)[0], images) * images - e.shape(x)[0]),
          layout.factors);
    case Move::kSpaceToBatch:
      return SpaceToBatch(e, x, layout.factors);
    case Move::kResiduesToBatch:
      return ResiduesToBatch(e, x, layout.factors);
    case Move::kResiduesStacked:
      return ResiduesStacked(e, x, layout.factors);
  }
  return x;
}

ValueId OutOfLayout(Emitter& e, ValueId x, const Layout& layout, const Shape& original) {
  switch (layout.move) {
    case Move::kBatchToSpace:
      x = SpaceToBatch(e, x, layout.factors);
      break;
    case Move::kSpaceToBatch:
      x = BatchToSpace(e, x, layout.factors);
      break;
    case Move::kResiduesToBatch:
      x = BatchToResidues(e, x, layout.factors);
      break;
    case Move::kResiduesStacked:
      x = ResiduesUnstacked(e, x, layout.factors);
      break;
  }
  return e.Cut(x, Box::Whole(original));
}

/// The gaps of `x` set to zero again.
ValueId ZeroGaps(Emitter& e, ValueId x, const Layout& layout, const LaidOutNode& node) {
  Shape shape = {1, 1};
  for (size_t d = 0; d < layout.factors.size(); ++d)
    shape.push_back(layout.factors[d] == 1 ? 1 : layout.factors[d] * node.slots[d]);
  std::vector<double> mask(static_cast<size_t>(NumElements(shape)));
  for (size_t flat = 0; flat < mask.size(); ++flat) {
    int64_t rest = static_cast<int64_t>(flat);
    bool inside = true;
    for (size_t d = layout.factors.size(); d-- > 0;) {
      const int64_t place = rest % shape[d + 2];
      rest /= shape[d + 2];
      inside = inside && (layout.factors[d] == 1 || place % node.slots[d] < node.extents[d]);
    }
    mask[flat] = inside ? 1 : 0;
  }
  return e.Mul(x, e.Constant(Tensor::FromDoubles({e.type(x).dtype, shape}, mask)));
}

bool FeedsAWindow(const Graph& region, int32_t id) {
  const std::vector<int32_t>& users = region.users(id);
  return std::any_of(users.begin(), users.end(),
                     [&](int32_t user) { return IsWindowNode(region, user); });
}

/// `node` on laid out operands.
ValueId EmitNode(Emitter& e, const Graph& region, int32_t id, const LaidOutNode& plan,
                 const std::vector<ValueId>& values) {
  const Node& node = region.node(id);
  std::vector<ValueId> inputs;
  for (ValueId value : node.inputs) {
    inputs.push_back(IsWeight(region, value) ? e.CopyConstantExpression(region, value)
                                             : values[static_cast<size_t>(value.node)]);
  }
  Attributes attrs = node.attrs;
  if (!plan.windows.empty()) {
    Ints dilations, pads(2 * plan.windows.size());
    for (size_t d = 0; d < plan.windows.size(); ++d) {
      dilations.push_back(plan.windows[d].dilation);
      pads[d] = plan.windows[d].pad_begin;
      pads[plan.windows.size() + d] = plan.windows[d].pad_end;
    }
    attrs.Set("dilations", dilations);
    attrs.Set("pads", pads);
  }
  return e.Op(node.op->name, inputs, attrs, node.name);
}

}  // namespace

size_t SpatialRank(const Graph& region) {
  return region.type(region.outputs()[0].value).shape.size() - 2;
}

absl::StatusOr<std::vector<LaidOutNode>> PlanLayout(const Graph& region, const Layout& layout) {
  const size_t rank = layout.factors.size();
  const bool fits =
      std::all_of(region.outputs().begin(), region.outputs().end(), [&](const GraphOutput& output) {
        return region.type(output.value).shape.size() == rank + 2;
      });
  if (region.outputs().empty() || !fits || 2 + 2 * rank > kMaxRank) {
    return absl::FailedPreconditionError("outputs of other ranks");
  }
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Shape> steps, Steps(region, rank));
  std::vector<LaidOutNode> plan(region.nodes().size());
  Shape units(rank, 1);
  for (size_t id = 0; id < plan.size(); ++id) {
    if (steps[id].empty()) continue;
    const Shape& shape = region.nodes()[id].outputs[0].shape;
    plan[id].extents = SpaceOf(shape);
    for (size_t d = 0; d < rank; ++d)
      units[d] =
          std::max(units[d], UnitOf(region, static_cast<int32_t>(id), layout, d, steps[id][d]));
  }
  for (size_t id = 0; id < plan.size(); ++id) {
    if (steps[id].empty()) continue;
    for (size_t d = 0; d < rank; ++d)
      plan[id].slots.push_back(layout.factors[d] == 1 ? plan[id].extents[d]
                                                      : units[d] * steps[id][d]);
    if (!IsWindowNode(region, static_cast<int32_t>(id))) continue;
    plan[id].windows = WindowsOfNode(region, static_cast<int32_t>(id));
    const LaidOutNode& input = plan[static_cast<size_t>(region.nodes()[id].inputs[0].node)];
    for (size_t d = 0; d < rank; ++d) {
      if (layout.factors[d] == 1) continue;
      const int64_t slots = InSpace(layout.move) ? layout.factors[d] : 1;
      const bool pool = region.nodes()[id].op->name != "Conv";
      MENDEL_ASSIGN_OR_RETURN(plan[id].windows[d],
                              OverSlots(plan[id].windows[d], layout, d, slots * input.slots[d],
                                        slots * plan[id].slots[d], pool));
    }
  }
  return plan;
}

absl::StatusOr<Graph> ApplyLayout(const Graph& region, const Layout& layout) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<LaidOutNode> plan, PlanLayout(region, layout));
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(region);
  std::vector<ValueId> values(plan.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    const size_t id = static_cast<size_t>(region.inputs()[k]);
    values[id] = IntoLayout(e, inputs[k], layout, plan[id].slots);
  }
  for (size_t i = 0; i < plan.size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    if (plan[i].extents.empty() || IsInput(region.node(id))) continue;
    values[i] = EmitNode(e, region, id, plan[i], values);
    if (layout.gaps && FeedsAWindow(region, id))
      values[i] = ZeroGaps(e, values[i], layout, plan[i]);
  }
  for (const GraphOutput& output : region.outputs())
    e.Output(output.name, OutOfLayout(e, values[static_cast<size_t>(output.value.node)], layout,
                                      region.type(output.value).shape));
  return e.Finish();
}

}  // namespace mendel
