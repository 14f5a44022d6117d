// Relu(x) = max(x, 0). The oracle keeps the true fact Relu(0) = 0, so that Relu commutes with zero padding.

#include <algorithm>

#include "graph/op_helpers.h"

namespace mendel {
namespace {

constexpr ScalarFunction kRelu = {
    .name = "Relu",
    .real = [](std::span<const double> x, std::span<const double>) { return x[0] > 0 ? x[0] : (x[0] == x[0] ? 0.0 : x[0]); },
    .integer = [](std::span<const int64_t> x, std::span<const double>) { return std::max<int64_t>(x[0], 0); },
    .zero_at_zero = true};

struct ReluMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    return in.Call(kRelu, {in(0, i)});
  }
};

OpDefinition Make() {
  OpDefinition op;
  op.name = "Relu";
  op.min_inputs = op.max_inputs = 1;
  op.infer = &InferSame;
  op.meaning = MeaningOf<ReluMeaning>();
  op.restrict = &RestrictElementwise;
  op.access = &AccessElementwiseOracle;
  op.sample = &SampleUnary;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel
