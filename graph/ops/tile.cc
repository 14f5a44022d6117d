// Tile(x){repeats}: x repeated repeats[d] times along each dimension d.

#include "base/status.h"
#include "graph/element_structure.h"
#include "graph/movement.h"

namespace mendel::ops::tile {
namespace {

struct TileMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    std::array<int64_t, kMaxRank> source{};
    for (size_t d = 0; d < i.size(); ++d) source[d] = i[d] % in.shape(0)[d];
    return in(0, Index(source.data(), i.size()));
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Ints& repeats = attrs.IntList("repeats");
  TensorType type = inputs[0];
  if (repeats.size() != type.shape.size())
    return InvalidInput("repeats must have length ", type.shape.size());
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (repeats[d] < 0 || repeats[d] > kMaxElements)
      return InvalidInput("bad repeat ", repeats[d], " in dimension ", d);
    if (type.shape[d] > 0 && repeats[d] > kMaxElements / type.shape[d])
      return InvalidInput("the result is too large");
    type.shape[d] *= repeats[d];
  }
  MENDEL_RETURN_IF_ERROR(CheckExtents(type.shape));
  return std::vector<TensorType>{type};
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 0, 4, 4);
  Ints repeats;
  for (size_t d = 0; d < shape.size(); ++d) repeats.push_back(rng.Between(1, 3));
  return {{{SampleAnyDType(rng), shape}}, {{"repeats", repeats}}, {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Tile";
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"repeats", Ints(), true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<TileMeaning>();
  op.linear_inputs = &LinearInFirst;
  op.bound = &BoundOfSelection;
  op.sample = &Sample;
  op.sign = &SignLeast;
  op.storage = StorageTypes::kAll;
  return op;
}

std::optional<SeparableTaps> Taps(const NodeView& node, std::span<const Tensor* const>, int) {
  SeparableTaps result;
  for (size_t d = 0; d < node.inputs[0].shape.size(); ++d) {
    SeparableTaps::Dim& dim = result.dims.emplace_back();
    dim.input_dim = static_cast<int>(d);
    for (int64_t t = 0; t < node.outputs[0].shape[d]; ++t)
      dim.taps.push_back({{t % node.inputs[0].shape[d], 1.0}});
  }
  return result;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_ELEMENT_STRUCTURE({.op = "Tile", .taps = &Taps});

}  // namespace
}  // namespace mendel::ops::tile
