// Celu(x) = max(0, x) + min(0, alpha (e^(x / alpha) - 1)).

#include <cmath>

#include "base/status.h"
#include "graph/elementwise.h"

namespace mendel::ops::celu {
namespace {

constexpr ScalarFunction kCelu = {.name = "Celu",
                                  .real =
                                      [](std::span<const double> x, std::span<const double> p) {
                                        return x[0] > 0 ? x[0] : p[0] * std::expm1(x[0] / p[0]);
                                      },
                                  .zero_at_zero = true};

Parameters ParametersOf(const NodeView& node) { return {node.attrs.Float("alpha")}; }

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const double alpha = attrs.Float("alpha");
  if (alpha == 0 || !std::isfinite(alpha))
    return InvalidInput("alpha must be finite and not 0, not ", alpha);
  return InferSameFloat(inputs, attrs);
}

OpSample Sample(Rng& rng) {
  OpSample sample = SampleUnaryFloat(rng);
  sample.attrs.Set("alpha", rng.Uniform(0.5, 2));
  return sample;
}

OpDefinition Make() {
  OpDefinition op = UnaryOp<kCelu, &ParametersOf>();
  op.attributes = {{"alpha", 1.0}};
  op.infer = &Infer;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::celu
