// ReduceSum(x): the sum over `axes`; 0 over nothing.

#include "graph/elementwise.h"
#include "graph/reduction.h"

namespace mendel::ops::reduce_sum {
namespace {

struct ReduceSumMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillReduction(in, node.attrs.IntList("axes"), out, [&](std::span<const S> x) {
      S sum{};
      for (const S& v : x) sum = Plus(sum, v);
      return sum;
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int, const Arithmetic<Bound>&) {
  return SumOf(ReducedCount(node), inputs[0]);
}

OpDefinition Make() {
  OpDefinition op = ReduceOp("ReduceSum", &SampleReduceNumeric);
  op.meaning = MeaningOf<ReduceSumMeaning>();
  op.bound = &BoundOf;
  op.linear_inputs = &LinearInFirst;
  op.access = &AccessReduceSum;
  op.sign = &SignOfReduction;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::reduce_sum
