// ReduceL2(x): the square root of the sum of squares over `axes`.

#include "graph/elementwise.h"
#include "graph/functions.h"
#include "graph/reduction.h"

namespace mendel::ops::reduce_l2 {
namespace {

struct ReduceL2Meaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillReduction(in, node.attrs.IntList("axes"), out, [&](std::span<const S> x) {
      S sum{};
      for (const S& v : x) sum = Plus(sum, Times(v, v));
      return in.Call(functions::kSqrt, {sum});
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  arithmetic.CountOperands(1, SumOf(ReducedCount(node), inputs[0] * inputs[0]));
  return Bound::Symbol();
}

OpDefinition Make() {
  OpDefinition op = ReduceOp("ReduceL2", &SampleReduceFloat);
  op.meaning = MeaningOf<ReduceL2Meaning>();
  op.bound = &BoundOf;
  op.sign = &SignOfNorm;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::reduce_l2
