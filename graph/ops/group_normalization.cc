// GroupNormalization(x[N, C, D...], scale[C], bias[C]): each image's group of C / num_groups
// channels normalized over its channels and positions (opset 21: scale and bias are per channel).

#include "base/status.h"
#include "graph/normalization.h"

namespace mendel::ops::group_normalization {
namespace {

struct GroupNormalizationMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillNormalizedChannels(in, node, in.shape(0)[1] / node.attrs.Int("num_groups"), out);
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Shape& x = inputs[0].shape;
  if (x.size() < 2)
    return InvalidInput("input ", ShapeString(x), " must have a rank of at least 2");
  const int64_t groups = attrs.Int("num_groups");
  if (groups < 1 || x[1] % groups != 0)
    return InvalidInput("num_groups ", groups, " does not divide the ", x[1], " channels");
  MENDEL_RETURN_IF_ERROR(CheckChannelParameters(inputs, x[1]));
  MENDEL_RETURN_IF_ERROR(CheckEpsilon(attrs));
  return std::vector<TensorType>{inputs[0]};
}

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  const Shape& x = node.inputs[0].shape;
  const int64_t count = NumElements(Shape(x.begin() + 1, x.end())) / node.attrs.Int("num_groups");
  return BoundOfNormalized(static_cast<double>(count), inputs[0], node.attrs.Float("epsilon"),
                           arithmetic) *
             inputs[1] +
         inputs[2];
}

/// Boxes of whole groups.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const Shape& x = node.inputs[0].shape;
  const int64_t per_group = x[1] / node.attrs.Int("num_groups");
  for (size_t d = 2; d < x.size(); ++d) {
    if (out.begin[d] != 0 || out.end[d] != x[d]) return std::nullopt;
  }
  if (per_group == 0 || out.begin[1] % per_group != 0 || out.end[1] % per_group != 0)
    return std::nullopt;
  const Box channels{{out.begin[1]}, {out.end[1]}};
  Restriction restriction{{out, channels, channels}, node.attrs};
  restriction.attrs.Set("num_groups", (out.end[1] - out.begin[1]) / per_group);
  return restriction;
}

/// The images, jointly, times scale, plus bias.
std::optional<AccessPattern> Access(const NodeView& node) {
  return AccessNormalizedChannels(node, 1);
}

OpSample Sample(Rng& rng) {
  Shape shape = SampleShape(rng, 2, 5, 3);
  const int64_t groups = rng.Between(1, 3);
  shape[1] *= groups;
  const TensorType parameter{DType::kF32, {shape[1]}};
  return {{{DType::kF32, shape}, parameter, parameter},
          {{"num_groups", groups}, {"epsilon", rng.Flip() ? 1e-5 : 0.25}},
          {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "GroupNormalization";
  op.min_inputs = op.max_inputs = 3;
  op.attributes = {{"num_groups", int64_t{1}, true}, {"epsilon", 1e-5}};
  op.infer = &Infer;
  op.meaning = MeaningOf<GroupNormalizationMeaning>();
  op.bound = &BoundOf;
  op.cost = &CostOfNormalization;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::group_normalization
