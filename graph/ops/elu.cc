// Elu(x) = x where x >= 0, else alpha (e^x - 1).

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::elu {
namespace {

constexpr ScalarFunction kElu = {
    .name = "Elu",
    .real = [](std::span<const double> x,
               std::span<const double> p) { return x[0] < 0 ? p[0] * std::expm1(x[0]) : x[0]; },
    .zero_at_zero = true};

Parameters ParametersOf(const NodeView& node) { return {node.attrs.Float("alpha")}; }

OpSample Sample(Rng& rng) {
  OpSample sample = SampleUnaryFloat(rng);
  sample.attrs.Set("alpha", rng.Uniform(0.5, 2));
  return sample;
}

OpDefinition Make() {
  OpDefinition op = UnaryOp<kElu, &ParametersOf>();
  op.attributes = {{"alpha", 1.0}};
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::elu
