// GatherElements(x, indices){axis}: y[i] = x[i with coordinate `axis` replaced by indices[i]]. The
// result has the shape of `indices`. Indices may be negative; for those outside the extent see
// movement.h.

#include <algorithm>

#include "base/status.h"
#include "graph/movement.h"

namespace mendel::ops::gather_elements {
namespace {

struct GatherElementsMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView& node, int, Index i) {
    const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
    const auto at = ResolveIndex(in.Integer(1, i), in.shape(0)[axis]);
    if (!at.has_value()) return InvalidElement<S>();
    std::array<int64_t, kMaxRank> source{};
    std::copy(i.begin(), i.end(), source.begin());
    source[axis] = *at;
    return in(0, Index(source.data(), i.size()));
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Shape& shape = inputs[0].shape;
  const Shape& indices = inputs[1].shape;
  const int64_t axis = attrs.Int("axis");
  MENDEL_RETURN_IF_ERROR(CheckIndexType(inputs[1]));
  MENDEL_RETURN_IF_ERROR(CheckAxis(axis, shape.size()));
  bool fits = indices.size() == shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d)
    fits = d == static_cast<size_t>(axis) || indices[d] <= shape[d];
  if (!fits)
    return InvalidInput("indices ", ShapeString(indices), " do not fit into ", ShapeString(shape),
                        " along axis ", axis);
  return std::vector<TensorType>{{inputs[0].dtype, indices}};
}

/// The data stay whole along `axis` alone.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  Box data = out;
  data.begin[axis] = 0;
  data.end[axis] = node.inputs[0].shape[axis];
  return Restriction{{data, out}, node.attrs};
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 1, 4, 6);
  const int64_t axis = rng.Between(0, static_cast<int64_t>(shape.size()) - 1);
  Shape indices;
  for (int64_t extent : shape) indices.push_back(rng.Between(1, extent));
  indices[static_cast<size_t>(axis)] = rng.Between(1, 8);
  const double extent = static_cast<double>(shape[static_cast<size_t>(axis)]);
  return {{{SampleAnyDType(rng), shape}, SampleIndexType(rng, indices)},
          {{"axis", axis}},
          {{1, {rng.Flip() ? -extent : 0.0, extent}}}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "GatherElements";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"axis", int64_t{0}, true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<GatherElementsMeaning>();
  op.linear_inputs = &LinearInFirst;
  op.index_inputs = 2;
  op.bound = &BoundOfSelection;
  op.restrict = &Restrict;
  op.sample = &Sample;
  op.storage = StorageTypes::kAll;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::gather_elements
