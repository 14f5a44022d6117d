// Selu(x) = gamma x where x > 0, else gamma alpha (e^x - 1). The defaults are ONNX's, which are
// exact floats.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::selu {
namespace {

constexpr ScalarFunction kSelu = {.name = "Selu",
                                  .real =
                                      [](std::span<const double> x, std::span<const double> p) {
                                        return p[1] * (x[0] > 0 ? x[0] : p[0] * std::expm1(x[0]));
                                      },
                                  .zero_at_zero = true};

Parameters ParametersOf(const NodeView& node) {
  return {node.attrs.Float("alpha"), node.attrs.Float("gamma")};
}

OpSample Sample(Rng& rng) {
  OpSample sample = SampleUnaryFloat(rng);
  sample.attrs.Set("alpha", rng.Uniform(1, 2));
  sample.attrs.Set("gamma", rng.Uniform(0.5, 2));
  return sample;
}

OpDefinition Make() {
  OpDefinition op = UnaryOp<kSelu, &ParametersOf>();
  op.attributes = {{"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}};
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::selu
