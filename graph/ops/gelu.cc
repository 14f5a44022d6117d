// Gelu(x) = x Phi(x), Phi the normal distribution function; approximate = "tanh": by the usual tanh
// formula.

#include <cmath>
#include <numbers>

#include "base/status.h"
#include "graph/elementwise.h"

namespace mendel::ops::gelu {
namespace {

double Gelu(double x, bool by_tanh) {
  // erfc keeps the relative accuracy of the left tail, which 1 + erf cancels.
  if (!by_tanh) return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

constexpr ScalarFunction kGelu = {
    .name = "Gelu",
    .real = [](std::span<const double> x,
               std::span<const double> p) { return Gelu(x[0], p[0] != 0); },
    .zero_at_zero = true};

Parameters ParametersOf(const NodeView& node) {
  return {node.attrs.Str("approximate") == "tanh" ? 1.0 : 0.0};
}

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const std::string& approximate = attrs.Str("approximate");
  if (approximate != "none" && approximate != "tanh")
    return InvalidInput("unknown approximation '", approximate, "'");
  return InferSameFloat(inputs, attrs);
}

OpSample Sample(Rng& rng) {
  OpSample sample = SampleUnaryFloat(rng);
  if (rng.Flip()) sample.attrs.Set("approximate", std::string("tanh"));
  return sample;
}

OpDefinition Make() {
  OpDefinition op = UnaryOp<kGelu, &ParametersOf>();
  op.attributes = {{"approximate", std::string("none")}};
  op.infer = &Infer;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::gelu
