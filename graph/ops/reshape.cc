// Reshape: the same elements in row-major order under another shape. ONNX Flatten, Squeeze and
// Unsqueeze become this.

#include <algorithm>

#include "base/status.h"
#include "graph/grid.h"
#include "graph/op_helpers.h"
#include "graph/view_cut.h"

namespace mendel::ops::reshape {
namespace {

struct ReshapeMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView& node, int, Index i) {
    return in.Flat(0, FlatIndex(node.outputs[0].shape, i));
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  TensorType type{inputs[0].dtype, attrs.IntList("shape")};
  int64_t count = 1;
  for (int64_t extent : type.shape) {
    if (extent < 0 || (extent > 0 && count > kMaxElements / extent))
      return InvalidInput("bad shape ", ShapeString(type.shape));
    count *= extent;
  }
  if (count != NumElements(inputs[0])) {
    return InvalidInput("cannot reshape ", ShapeString(inputs[0].shape), " to ",
                        ShapeString(type.shape));
  }
  return std::vector<TensorType>{type};
}

/// Exact where the wanted box is whole in every dimension after the first that is cut, and the
/// input has a dimension boundary at the same place: rows [begin, end) of the leading part.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const Shape& to = node.outputs[0].shape;
  const Shape& from = node.inputs[0].shape;
  size_t cut = 0;
  while (cut < to.size() && to[cut] == 1) ++cut;
  if (cut == to.size()) return std::nullopt;
  size_t source = 0;
  while (source < from.size() && from[source] == 1) ++source;
  for (size_t d = cut + 1; d < to.size(); ++d) {
    if (out.begin[d] != 0 || out.end[d] != to[d]) return std::nullopt;
  }
  if (source == from.size() || from[source] != to[cut]) return std::nullopt;
  Restriction restriction{{Box::Whole(from)}, node.attrs};
  restriction.inputs[0].begin[source] = out.begin[cut];
  restriction.inputs[0].end[source] = out.end[cut];
  restriction.attrs.Set("shape", out.Extents());
  return restriction;
}

/// The wanted grid over dimensions [first, last) of the output as a grid of the input's dimensions
/// that hold the same elements; what is computed may be more.
void RestrictGroup(const NodeView& node, const ViewGroup& group, const Grid& wanted,
                   GridRestriction& result) {
  const Shape& from = node.inputs[0].shape;
  const Shape& to = node.outputs[0].shape;
  const auto part = [](const auto& list, size_t begin, size_t end) {
    return std::decay_t<decltype(list)>(list.begin() + static_cast<int64_t>(begin),
                                        list.begin() + static_cast<int64_t>(end));
  };
  const Shape from_shape = part(from, group.from_begin, group.from_end);
  const Shape to_shape = part(to, group.to_begin, group.to_end);
  const Grid to_grid = part(wanted, group.to_begin, group.to_end);
  if (IsWhole(to_grid, to_shape)) return;
  const std::vector<int64_t> flat = FlatPositions(to_shape, to_grid);
  const Grid hull = HullOfFlat(from_shape, flat);
  const std::vector<int64_t> covered = FlatPositions(from_shape, hull);
  Grid computed = to_grid;
  if (covered != flat) {
    computed = HullOfFlat(to_shape, covered);
    if (FlatPositions(to_shape, computed) != covered) return;
  }
  std::copy(computed.begin(), computed.end(),
            result.computed.begin() + static_cast<int64_t>(group.to_begin));
  std::copy(hull.begin(), hull.end(),
            result.inputs[0].begin() + static_cast<int64_t>(group.from_begin));
}

std::optional<GridRestriction> RestrictGrid(const GridRequest& request) {
  GridRestriction result = WholeRestriction(request.node, 0);
  result.moved = 0;
  for (const ViewGroup& group :
       GroupView(request.node.inputs[0].shape, request.node.outputs[0].shape))
    RestrictGroup(request.node, group, request.wanted, result);
  result.attrs.Set("shape", ExtentsOf(result.computed));
  return result;
}

std::optional<AccessPattern> Access(const NodeView& node) {
  AccessPattern pattern;
  pattern.combine = AccessPattern::Combine::kReshape;
  pattern.breaks.resize(node.outputs[0].shape.size());
  return pattern;
}

OpSample Sample(Rng& rng) {
  Shape shape = SampleShape(rng, 1, 4, 6);
  Shape target;
  for (int64_t extent : shape) {
    if (!target.empty() && rng.Flip()) {
      target.back() *= extent;
    } else {
      target.push_back(extent);
    }
    if (rng.Flip(0.2)) target.push_back(1);
  }
  if (rng.Flip()) std::swap(shape, target);
  return {{{DType::kF32, shape}}, {{"shape", target}}, {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Reshape";
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"shape", Ints(), true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<ReshapeMeaning>();
  op.linear_inputs = &LinearInFirst;
  op.bound = &BoundOfSelection;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  op.is_view = true;
  op.sign = &SignOfFirst;
  op.storage = StorageTypes::kAll;
  return op;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "Reshape", .restrict = &RestrictGrid});

}  // namespace
}  // namespace mendel::ops::reshape
