// Split(x){axis, sizes}: output k is the k-th of the consecutive pieces along `axis`, of extents
// `sizes`.

#include <algorithm>
#include <numeric>

#include "base/status.h"
#include "graph/element_structure.h"
#include "graph/fill.h"
#include "graph/movement.h"

namespace mendel::ops::split {
namespace {

struct SplitMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int output, std::span<S> out) {
    const Ints& sizes = node.attrs.IntList("sizes");
    const Shape& shape = in.shape(0);
    const auto axis = shape.begin() + node.attrs.Int("axis");
    const int64_t inner = NumElements(Shape(axis + 1, shape.end()));
    const int64_t row = sizes[static_cast<size_t>(output)] * inner;
    const int64_t start =
        std::accumulate(sizes.begin(), sizes.begin() + output, int64_t{0}) * inner;
    ForRanges<S>(NumElements(Shape(shape.begin(), axis)), row, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t i = 0; i < row; ++i)
          out[static_cast<size_t>(r * row + i)] = in.Flat(0, r * *axis * inner + start + i);
      }
    });
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Ints& sizes = attrs.IntList("sizes");
  const int64_t axis = attrs.Int("axis");
  MENDEL_RETURN_IF_ERROR(CheckAxis(axis, inputs[0].shape.size()));
  const int64_t extent = inputs[0].shape[static_cast<size_t>(axis)];
  int64_t total = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > extent - total)
      return InvalidInput("sizes do not sum up to the extent ", extent);
    total += size;
  }
  if (sizes.empty() || total != extent)
    return InvalidInput("sizes sum up to ", total, ", not to the extent ", extent);
  std::vector<TensorType> types;
  for (int64_t size : sizes) {
    types.push_back(inputs[0]);
    types.back().shape[static_cast<size_t>(axis)] = size;
  }
  return types;
}

/// Output 0 only; the other pieces of the restricted node are dropped.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  Restriction restriction{{out}, node.attrs};
  restriction.attrs.Set("sizes", Ints{out.end[axis] - out.begin[axis]});
  return restriction;
}

OpSample Sample(Rng& rng) {
  Shape shape = SampleShape(rng, 1, 4, 5);
  const int64_t axis = rng.Between(0, static_cast<int64_t>(shape.size()) - 1);
  Ints sizes;
  for (int64_t k = rng.Between(1, 4); k > 0; --k) sizes.push_back(rng.Between(1, 4));
  shape[static_cast<size_t>(axis)] = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  return {{{SampleAnyDType(rng), shape}}, {{"axis", axis}, {"sizes", sizes}}, {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Split";
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"axis", int64_t{0}, true}, {"sizes", Ints(), true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<SplitMeaning>();
  op.linear_inputs = &LinearInFirst;
  op.bound = &BoundOfSelection;
  op.restrict = &Restrict;
  op.sample = &Sample;
  op.sign = &SignLeast;
  op.storage = StorageTypes::kAll;
  return op;
}

std::optional<SeparableTaps> Taps(const NodeView& node, std::span<const Tensor* const>,
                                  int output) {
  const Ints& sizes = node.attrs.IntList("sizes");
  const Shape& shape = node.outputs[static_cast<size_t>(output)].shape;
  SeparableTaps result;
  for (size_t d = 0; d < shape.size(); ++d) {
    SeparableTaps::Dim& dim = result.dims.emplace_back(IdentityTaps(static_cast<int>(d), shape[d]));
    if (static_cast<int64_t>(d) != node.attrs.Int("axis")) continue;
    const int64_t start = std::accumulate(sizes.begin(), sizes.begin() + output, int64_t{0});
    for (std::vector<Tap>& list : dim.taps) list[0].position += start;
  }
  return result;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_ELEMENT_STRUCTURE({.op = "Split", .taps = &Taps});

}  // namespace
}  // namespace mendel::ops::split
