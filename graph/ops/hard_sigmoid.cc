// HardSigmoid(x) = max(0, min(1, alpha x + beta)). Its value at 0 is beta: nothing is pinned.

#include <algorithm>

#include "graph/elementwise.h"

namespace mendel::ops::hard_sigmoid {
namespace {

constexpr ScalarFunction kHardSigmoid = {
    .name = "HardSigmoid", .real = [](std::span<const double> x, std::span<const double> p) {
      return std::clamp(p[0] * x[0] + p[1], 0.0, 1.0);
    }};

Parameters ParametersOf(const NodeView& node) {
  return {node.attrs.Float("alpha"), node.attrs.Float("beta")};
}

OpSample Sample(Rng& rng) {
  OpSample sample = SampleUnaryFloat(rng);
  sample.attrs.Set("alpha", rng.Uniform(0.1, 1));
  sample.attrs.Set("beta", rng.Uniform(0.2, 0.8));
  return sample;
}

OpDefinition Make() {
  OpDefinition op = UnaryOp<kHardSigmoid, &ParametersOf>();
  op.attributes = {{"alpha", 0.2}, {"beta", 0.5}};
  op.sample = &Sample;
  op.sign = [](const NodeView&, std::span<const Sign>, bool) { return Sign::kNonNegative; };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::hard_sigmoid
