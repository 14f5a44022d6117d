// Div(a, b) = a / b with NumPy broadcasting: exact division of floats. The quotient of integers is
// truncated, hence no quotient in the field: there it is an oracle, since (a / b) * b = a is false.

#include "graph/elementwise.h"

namespace mendel::ops::div {
namespace {

constexpr ScalarFunction kTruncatedQuotient = {
    .name = "DivInteger",
    .real = [](std::span<const double> x, std::span<const double>) { return x[0] / x[1]; },
    .integer = [](std::span<const int64_t> x,
                  std::span<const double>) { return Arithmetic<int64_t>().Divide(x[0], x[1]); }};

struct DivMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView& node, int, Index i) {
    const S a = in.Broadcast(0, i);
    const S b = in.Broadcast(1, i);
    return IsIntegral(node.outputs[0].dtype) ? in.Call(kTruncatedQuotient, {a, b})
                                             : in.Divide(a, b);
  }
};

OpSample Sample(Rng& rng) {
  OpSample sample = SampleBinaryNumeric(rng);
  const bool integral = IsIntegral(sample.inputs[1].dtype);
  sample.ranges.push_back({1, integral ? std::pair(1.0, 6.0) : std::pair(0.5, 2.0)});
  return sample;
}

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("Div", 2);
  op.infer = &InferBroadcastNumeric;
  op.meaning = MeaningOf<DivMeaning>();
  op.linear_inputs = [](const NodeView& node) { return IsFloat(node.outputs[0].dtype) ? 1u : 0u; };
  op.access = [](const NodeView& node) {
    if (IsIntegral(node.outputs[0].dtype)) return AccessElementwiseOracle(node);
    std::optional<AccessPattern> pattern = AccessElementwiseProduct(node);
    pattern->divided_inputs = 2;
    return pattern;
  };
  op.sample = &Sample;
  op.domain = {{.input = 1, .demand = Demand::kNonZero, .group = "denominator"}};
  op.sign = [](const NodeView&, std::span<const Sign> inputs, bool) {
    return inputs[1] == Sign::kPositive ? inputs[0] : Sign::kUnknown;
  };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::div
