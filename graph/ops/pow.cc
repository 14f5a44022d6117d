// Pow(a, b) = a^b with NumPy broadcasting, in the dtype of a; b may have another. Powers of
// integers are truncated and wrap, and have an oracle of their own.

#include <cmath>

#include "base/status.h"
#include "graph/elementwise.h"
#include "graph/functions.h"

namespace mendel::ops::pow {
namespace {

int64_t IntegerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : (base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0);
  int64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base = Times(base, base)) {
    if (exponent & 1) result = Times(result, base);
  }
  return result;
}

constexpr ScalarFunction kIntegerPow = {
    .name = "PowInteger",
    .real = [](std::span<const double> x,
               std::span<const double>) { return std::trunc(std::pow(x[0], x[1])); },
    .integer = [](std::span<const int64_t> x,
                  std::span<const double>) { return IntegerPower(x[0], x[1]); }};

struct PowMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView& node, int, Index i) {
    const ScalarFunction& f = IsIntegral(node.outputs[0].dtype) ? kIntegerPow : functions::kPow;
    return in.Call(f, {in.Broadcast(0, i), in.Broadcast(1, i)});
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  if (inputs[0].dtype == DType::kBool || inputs[1].dtype == DType::kBool)
    return InvalidInput("expected numbers, not Booleans");
  const std::vector<TensorType> alike = {inputs[0], {inputs[0].dtype, inputs[1].shape}};
  return InferBroadcast(alike, attrs);
}

OpSample Sample(Rng& rng) {
  OpSample sample = SampleBinaryNumeric(rng);
  const bool integral = IsIntegral(sample.inputs[0].dtype);
  if (rng.Flip(0.2)) sample.inputs[1].dtype = integral ? DType::kF32 : DType::kI64;
  sample.ranges = {{0, {integral ? 0.0 : 0.5, 4.0}}, {1, {integral ? 0.0 : -2.0, 4.0}}};
  return sample;
}

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("Pow", 2);
  op.infer = &Infer;
  op.meaning = MeaningOf<PowMeaning>();
  op.sample = &Sample;
  op.domain = {{.demand = Demand::kPositive, .whole_exponent = 1}};
  op.sign = [](const NodeView&, std::span<const Sign> inputs, bool) {
    return inputs[0] == Sign::kPositive ? Sign::kPositive : Sign::kUnknown;
  };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::pow
