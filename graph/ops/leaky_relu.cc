// LeakyRelu(x) = x where x >= 0, else alpha x.

#include "graph/elementwise.h"

namespace mendel::ops::leaky_relu {
namespace {

constexpr ScalarFunction kLeakyRelu = {
    .name = "LeakyRelu",
    .real = [](std::span<const double> x,
               std::span<const double> p) { return x[0] < 0 ? p[0] * x[0] : x[0]; },
    .zero_at_zero = true};

Parameters ParametersOf(const NodeView& node) { return {node.attrs.Float("alpha")}; }

OpSample Sample(Rng& rng) {
  OpSample sample = SampleUnaryFloat(rng);
  sample.attrs.Set("alpha", rng.Uniform(0, 0.5));
  return sample;
}

OpDefinition Make() {
  OpDefinition op = UnaryOp<kLeakyRelu, &ParametersOf>();
  op.attributes = {{"alpha", 0.01}};
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::leaky_relu
