// Gather(x, indices){axis}: y[a..., i..., b...] = x[a..., indices[i...], b...], a before and b
// after `axis`. Indices may be negative; for those outside the extent see movement.h.

#include <algorithm>

#include "base/status.h"
#include "graph/element_structure.h"
#include "graph/grid.h"
#include "graph/movement.h"

namespace mendel::ops::gather {
namespace {

struct GatherMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView& node, int, Index i) {
    const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
    const size_t rank = in.shape(1).size();
    const auto at = ResolveIndex(in.Integer(1, i.subspan(axis, rank)), in.shape(0)[axis]);
    if (!at.has_value()) return InvalidElement<S>();
    std::array<int64_t, kMaxRank> source{};
    std::copy(i.begin(), i.begin() + static_cast<int64_t>(axis), source.begin());
    source[axis] = *at;
    std::copy(i.begin() + static_cast<int64_t>(axis + rank), i.end(), source.begin() + axis + 1);
    return in(0, Index(source.data(), in.shape(0).size()));
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Shape& shape = inputs[0].shape;
  MENDEL_RETURN_IF_ERROR(CheckIndexType(inputs[1]));
  MENDEL_RETURN_IF_ERROR(CheckAxis(attrs.Int("axis"), shape.size()));
  const auto axis = shape.begin() + attrs.Int("axis");
  TensorType type{inputs[0].dtype, Shape(shape.begin(), axis)};
  type.shape.insert(type.shape.end(), inputs[1].shape.begin(), inputs[1].shape.end());
  type.shape.insert(type.shape.end(), axis + 1, shape.end());
  if (type.shape.size() > kMaxRank) return InvalidInput("the result has rank ", type.shape.size());
  MENDEL_RETURN_IF_ERROR(CheckExtents(type.shape));
  return std::vector<TensorType>{type};
}

std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  const size_t rank = node.inputs[1].shape.size();
  Restriction restriction{{Box::Whole(node.inputs[0].shape), Box::Whole(node.inputs[1].shape)},
                          node.attrs};
  for (size_t d = 0; d < out.begin.size(); ++d) {
    const bool index = d >= axis && d < axis + rank;
    Box& box = restriction.inputs[index ? 1 : 0];
    const size_t to = index ? d - axis : (d < axis ? d : d - rank + 1);
    box.begin[to] = out.begin[d];
    box.end[to] = out.end[d];
  }
  return restriction;
}

/// Known indices: the positions that they name, row-major over the indices' dimensions.
std::optional<GridRestriction> RestrictGrid(const GridRequest& request) {
  const NodeView& node = request.node;
  if (request.constants[1] == nullptr) return std::nullopt;
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  const Shape& indices = node.inputs[1].shape;
  GridRestriction result = WholeRestriction(node, 0);
  result.computed = request.wanted;
  result.moved = 0;
  for (size_t d = 0; d < node.inputs[0].shape.size(); ++d) {
    if (d == axis) continue;
    result.inputs[0][d] = request.wanted[d < axis ? d : d + indices.size() - 1];
  }
  const Grid block(request.wanted.begin() + static_cast<int64_t>(axis),
                   request.wanted.begin() + static_cast<int64_t>(axis + indices.size()));
  std::vector<int64_t> list = FlatPositions(indices, block);
  for (int64_t& at : list) {
    const auto resolved = ResolveIndex(request.constants[1]->IntAt(at), node.inputs[0].shape[axis]);
    if (!resolved.has_value()) return std::nullopt;
    at = *resolved;
  }
  result.inputs[0][axis] = Positions::List(std::move(list));
  return result;
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 1, 4, 6);
  const int64_t axis = rng.Between(0, static_cast<int64_t>(shape.size()) - 1);
  const double extent = static_cast<double>(shape[static_cast<size_t>(axis)]);
  return {{{SampleAnyDType(rng), shape}, SampleIndexType(rng, SampleShape(rng, 0, 3, 4))},
          {{"axis", axis}},
          {{1, {rng.Flip() ? -extent : 0.0, extent}}}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Gather";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"axis", int64_t{0}, true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<GatherMeaning>();
  op.linear_inputs = &LinearInFirst;
  op.index_inputs = 2;
  op.bound = &BoundOfSelection;
  op.restrict = &Restrict;
  op.sample = &Sample;
  op.sign = &SignOfFirst;
  op.storage = StorageTypes::kAll;
  return op;
}

/// Known indices of rank 0 or 1 that exist.
std::optional<SeparableTaps> Taps(const NodeView& node, std::span<const Tensor* const> constants,
                                  int) {
  const Shape& shape = node.inputs[0].shape;
  const size_t rank = node.inputs[1].shape.size();
  if (constants[1] == nullptr || rank > 1) return std::nullopt;
  SeparableTaps result;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int64_t>(d) != node.attrs.Int("axis")) {
      result.dims.push_back(IdentityTaps(static_cast<int>(d), shape[d]));
      continue;
    }
    SeparableTaps::Dim dim{static_cast<int>(d), {}};
    for (int64_t index : constants[1]->ToInts()) {
      const std::optional<int64_t> at = ResolveIndex(index, shape[d]);
      if (!at.has_value()) return std::nullopt;
      dim.taps.push_back({{*at, 1.0}});
    }
    if (rank == 1) result.dims.push_back(std::move(dim));
  }
  return result;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "Gather", .restrict = &RestrictGrid});
MENDEL_REGISTER_ELEMENT_STRUCTURE({.op = "Gather", .taps = &Taps});

}  // namespace
}  // namespace mendel::ops::gather
