// OneHot(indices, values[2]){axis, depth}: a new dimension of extent `depth` at `axis` that holds
// values[1] at the index and values[0] elsewhere. Negative indices count from the end; an index
// outside [-depth, depth) gives values[0] everywhere.

#include <algorithm>

#include "base/status.h"
#include "graph/movement.h"

namespace mendel::ops::one_hot {
namespace {

struct OneHotMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView& node, int, Index i) {
    const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
    std::array<int64_t, kMaxRank> source{};
    std::copy(i.begin(), i.begin() + static_cast<int64_t>(axis), source.begin());
    std::copy(i.begin() + static_cast<int64_t>(axis) + 1, i.end(), source.begin() + axis);
    const auto hot =
        ResolveIndex(in.Integer(0, Index(source.data(), i.size() - 1)), node.attrs.Int("depth"));
    return in.Flat(1, hot == i[axis] ? 1 : 0);
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const int64_t depth = attrs.Int("depth");
  MENDEL_RETURN_IF_ERROR(CheckIndexType(inputs[0]));
  MENDEL_RETURN_IF_ERROR(CheckAxis(attrs.Int("axis"), inputs[0].shape.size() + 1));
  if (inputs[1].shape != Shape{2})
    return InvalidInput("values must have two elements, not ", ShapeString(inputs[1].shape));
  if (depth < 0) return InvalidInput("bad depth ", depth);
  TensorType type{inputs[1].dtype, inputs[0].shape};
  type.shape.insert(type.shape.begin() + attrs.Int("axis"), depth);
  if (type.shape.size() > kMaxRank) return InvalidInput("the result has rank ", type.shape.size());
  MENDEL_RETURN_IF_ERROR(CheckExtents(type.shape));
  return std::vector<TensorType>{type};
}

/// Whole along the new dimension.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const int64_t axis = node.attrs.Int("axis");
  const size_t at = static_cast<size_t>(axis);
  if (out.begin[at] != 0 || out.end[at] != node.attrs.Int("depth")) return std::nullopt;
  Box indices = out;
  indices.begin.erase(indices.begin.begin() + axis);
  indices.end.erase(indices.end.begin() + axis);
  return Restriction{{indices, Box{{0}, {2}}}, node.attrs};
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 0, 3, 5);
  const int64_t depth = rng.Between(1, 6);
  const double edge = static_cast<double>(depth + (rng.Flip(0.3) ? 2 : 0));  // some outside
  return {{SampleIndexType(rng, shape), {SampleAnyDType(rng), {2}}},
          {{"axis", rng.Between(0, static_cast<int64_t>(shape.size()))}, {"depth", depth}},
          {{0, {-edge, edge}}}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "OneHot";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"axis", int64_t{0}, true}, {"depth", int64_t{0}, true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<OneHotMeaning>();
  op.linear_inputs = [](const NodeView&) { return 2u; };
  op.index_inputs = 1;
  op.bound = &BoundOfSelection;
  op.restrict = &Restrict;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::one_hot
