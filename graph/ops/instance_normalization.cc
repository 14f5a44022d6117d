// InstanceNormalization(x[N, C, D...], scale[C], bias[C]): each image's channel normalized over its
// positions.

#include "base/status.h"
#include "graph/normalization.h"

namespace mendel::ops::instance_normalization {
namespace {

struct InstanceNormalizationMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillNormalizedChannels(in, node, 1, out);
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Shape& x = inputs[0].shape;
  if (x.size() < 3)
    return InvalidInput("input ", ShapeString(x), " must have a rank of at least 3");
  MENDEL_RETURN_IF_ERROR(CheckChannelParameters(inputs, x[1]));
  MENDEL_RETURN_IF_ERROR(CheckEpsilon(attrs));
  return std::vector<TensorType>{inputs[0]};
}

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  const Shape& x = node.inputs[0].shape;
  const double count = static_cast<double>(NumElements(Shape(x.begin() + 2, x.end())));
  return BoundOfNormalized(count, inputs[0], node.attrs.Float("epsilon"), arithmetic) * inputs[1] +
         inputs[2];
}

/// Boxes of whole planes.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const Shape& x = node.inputs[0].shape;
  for (size_t d = 2; d < x.size(); ++d) {
    if (out.begin[d] != 0 || out.end[d] != x[d]) return std::nullopt;
  }
  const Box channels{{out.begin[1]}, {out.end[1]}};
  return Restriction{{out, channels, channels}, node.attrs};
}

/// The planes, jointly, times scale, plus bias.
std::optional<AccessPattern> Access(const NodeView& node) {
  return AccessNormalizedChannels(node, 2);
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 3, 5, 4);
  const TensorType parameter{DType::kF32, {shape[1]}};
  return {
      {{DType::kF32, shape}, parameter, parameter}, {{"epsilon", rng.Flip() ? 1e-5 : 0.25}}, {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "InstanceNormalization";
  op.min_inputs = op.max_inputs = 3;
  op.attributes = {{"epsilon", 1e-5}};
  op.infer = &Infer;
  op.meaning = MeaningOf<InstanceNormalizationMeaning>();
  op.bound = &BoundOf;
  op.cost = &CostOfNormalization;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::instance_normalization
