// ThresholdedRelu(x) = x where x > alpha, else 0. Zero at zero whatever alpha is.

#include "graph/elementwise.h"

namespace mendel::ops::thresholded_relu {
namespace {

constexpr ScalarFunction kThresholdedRelu = {
    .name = "ThresholdedRelu",
    .real = [](std::span<const double> x,
               std::span<const double> p) { return x[0] > p[0] ? x[0] : 0.0; },
    .zero_at_zero = true};

Parameters ParametersOf(const NodeView& node) { return {node.attrs.Float("alpha")}; }

OpSample Sample(Rng& rng) {
  OpSample sample = SampleUnaryFloat(rng);
  sample.attrs.Set("alpha", rng.Uniform(-1, 1));
  return sample;
}

OpDefinition Make() {
  OpDefinition op = UnaryOp<kThresholdedRelu, &ParametersOf>();
  op.attributes = {{"alpha", 1.0}};
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::thresholded_relu
