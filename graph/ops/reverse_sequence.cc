// ReverseSequence(x, lens){batch_axis, time_axis}: in batch b the first lens[b] positions along
// `time_axis` in reverse order, the rest as they are. Lengths outside the extent read elements that
// do not exist (movement.h).

#include <algorithm>

#include "base/status.h"
#include "graph/movement.h"

namespace mendel::ops::reverse_sequence {
namespace {

struct ReverseSequenceMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView& node, int, Index i) {
    const size_t time = static_cast<size_t>(node.attrs.Int("time_axis"));
    const int64_t length = in.IntegerFlat(1, i[static_cast<size_t>(node.attrs.Int("batch_axis"))]);
    if (i[time] >= length) return in(0, i);
    if (length > in.shape(0)[time]) return InvalidElement<S>();
    std::array<int64_t, kMaxRank> source{};
    std::copy(i.begin(), i.end(), source.begin());
    source[time] = length - 1 - i[time];
    return in(0, Index(source.data(), i.size()));
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const int64_t batch = attrs.Int("batch_axis");
  const int64_t time = attrs.Int("time_axis");
  MENDEL_RETURN_IF_ERROR(CheckIndexType(inputs[1]));
  MENDEL_RETURN_IF_ERROR(CheckAxis(batch, inputs[0].shape.size()));
  MENDEL_RETURN_IF_ERROR(CheckAxis(time, inputs[0].shape.size()));
  if (batch == time) return InvalidInput("batch_axis and time_axis are both ", batch);
  if (inputs[1].shape != Shape{inputs[0].shape[static_cast<size_t>(batch)]}) {
    return InvalidInput("lengths ", TypeString(inputs[1]), " do not fit ", TypeString(inputs[0]));
  }
  return std::vector<TensorType>{inputs[0]};
}

/// Whole along the time.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const size_t batch = static_cast<size_t>(node.attrs.Int("batch_axis"));
  const size_t time = static_cast<size_t>(node.attrs.Int("time_axis"));
  if (out.begin[time] != 0 || out.end[time] != node.inputs[0].shape[time]) return std::nullopt;
  return Restriction{{out, Box{{out.begin[batch]}, {out.end[batch]}}}, node.attrs};
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 2, 4, 5);
  const int64_t batch = rng.Between(0, 1);
  const double longest = static_cast<double>(shape[static_cast<size_t>(1 - batch)]);
  return {{{SampleAnyDType(rng), shape}, SampleIndexType(rng, {shape[static_cast<size_t>(batch)]})},
          {{"batch_axis", batch}, {"time_axis", 1 - batch}},
          {{1, {0.0, longest + 1}}}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "ReverseSequence";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"batch_axis", int64_t{1}}, {"time_axis", int64_t{0}}};
  op.infer = &Infer;
  op.meaning = MeaningOf<ReverseSequenceMeaning>();
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
}  // namespace mendel::ops::reverse_sequence
