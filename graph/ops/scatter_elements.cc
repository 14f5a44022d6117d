// ScatterElements(data, indices, updates){axis, reduction}: `data` with the element at i,
// coordinate `axis` replaced by indices[i], replaced by or combined with updates[i], for every
// position i of `updates` in row-major order. Indices may be negative; updates outside the tensor
// are dropped (movement.h).

#include <algorithm>

#include "base/status.h"
#include "graph/movement.h"

namespace mendel::ops::scatter_elements {
namespace {

struct ScatterElementsMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const std::string& reduction = node.attrs.Str("reduction");
    const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
    const Shape& shape = in.shape(0);
    const Shape& updates = in.shape(2);
    for (size_t k = 0; k < out.size(); ++k) out[k] = in.Flat(0, static_cast<int64_t>(k));
    std::array<int64_t, kMaxRank> storage{};
    const std::span<int64_t> index(storage.data(), updates.size());
    for (int64_t k = 0; k < NumElements(updates); ++k) {
      const auto at = ResolveIndex(in.IntegerFlat(1, k), shape[axis]);
      if (at.has_value()) {
        std::array<int64_t, kMaxRank> target = storage;
        target[axis] = *at;
        S& element = out[static_cast<size_t>(FlatIndex(shape, Index(target.data(), shape.size())))];
        element = Scattered(in, reduction, element, in.Flat(2, k));
      }
      NextIndex(updates, index);
    }
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  if (IsStorageOnly(inputs[0].dtype) && attrs.Str("reduction") != "none")
    return Unsupported("no ", attrs.Str("reduction"), " of ", DTypeName(inputs[0].dtype),
                       ", a type for storage");
  const Shape& shape = inputs[0].shape;
  const Shape& indices = inputs[1].shape;
  const int64_t axis = attrs.Int("axis");
  MENDEL_RETURN_IF_ERROR(CheckReduction(attrs.Str("reduction")));
  MENDEL_RETURN_IF_ERROR(CheckIndexType(inputs[1]));
  MENDEL_RETURN_IF_ERROR(CheckAxis(axis, shape.size()));
  bool fits = indices.size() == shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d)
    fits = d == static_cast<size_t>(axis) || indices[d] <= shape[d];
  if (!fits)
    return InvalidInput("indices ", ShapeString(indices), " do not fit into ", ShapeString(shape),
                        " along axis ", axis);
  if (inputs[2] != TensorType{inputs[0].dtype, indices}) {
    return InvalidInput("updates must be ", TypeString({inputs[0].dtype, indices}), ", not ",
                        TypeString(inputs[2]));
  }
  return std::vector<TensorType>{inputs[0]};
}

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  const double meet =
      static_cast<double>(node.inputs[1].shape[static_cast<size_t>(node.attrs.Int("axis"))]);
  return BoundOfScatter(node.attrs.Str("reduction"), meet, inputs[0], inputs[2], arithmetic);
}

/// Along dimensions in which every position is updated, but for `axis`.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const Shape& shape = node.inputs[0].shape;
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  Box updates = out;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool whole = out.begin[d] == 0 && out.end[d] == shape[d];
    const bool all = d != axis && node.inputs[1].shape[d] == shape[d];
    if (!whole && !all) return std::nullopt;
    if (whole) updates.end[d] = node.inputs[1].shape[d];
  }
  return Restriction{{out, updates, updates}, node.attrs};
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 1, 4, 5);
  const int64_t axis = rng.Between(0, static_cast<int64_t>(shape.size()) - 1);
  Shape updates;
  for (int64_t extent : shape) updates.push_back(rng.Between(1, extent));
  const double extent = static_cast<double>(shape[static_cast<size_t>(axis)]);
  const char* reductions[] = {"none", "none", "add", "mul", "max", "min"};
  const DType dtype = rng.Flip(0.8) ? DType::kF32 : DType::kI64;
  return {{{dtype, shape}, SampleIndexType(rng, updates), {dtype, updates}},
          {{"axis", axis}, {"reduction", std::string(reductions[rng.Below(6)])}},
          {{1, {rng.Flip() ? -extent : 0.0, extent}}}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "ScatterElements";
  op.min_inputs = op.max_inputs = 3;
  op.attributes = {{"axis", int64_t{0}, true}, {"reduction", std::string("none")}};
  op.infer = &Infer;
  op.meaning = MeaningOf<ScatterElementsMeaning>();
  op.index_inputs = 2;
  op.bound = &BoundOf;
  op.restrict = &Restrict;
  op.sample = &Sample;
  op.storage = StorageTypes::kAll;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::scatter_elements
