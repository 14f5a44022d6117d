// ReduceSumSquare(x): the sum of squares over `axes`.

#include "graph/elementwise.h"
#include "graph/reduction.h"

namespace mendel::ops::reduce_sum_square {
namespace {

struct ReduceSumSquareMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillReduction(in, node.attrs.IntList("axes"), out, [&](std::span<const S> x) {
      S sum{};
      for (const S& v : x) sum = Plus(sum, Times(v, v));
      return sum;
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int, const Arithmetic<Bound>&) {
  return SumOf(ReducedCount(node), inputs[0] * inputs[0]);
}

OpDefinition Make() {
  OpDefinition op = ReduceOp("ReduceSumSquare", &SampleReduceNumeric);
  op.meaning = MeaningOf<ReduceSumSquareMeaning>();
  op.bound = &BoundOf;
  op.sign = &SignOfNorm;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::reduce_sum_square
