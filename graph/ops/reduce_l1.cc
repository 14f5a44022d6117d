// ReduceL1(x): the sum of magnitudes over `axes`.

#include "graph/elementwise.h"
#include "graph/functions.h"
#include "graph/reduction.h"

namespace mendel::ops::reduce_l1 {
namespace {

struct ReduceL1Meaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillReduction(in, node.attrs.IntList("axes"), out, [&](std::span<const S> x) {
      S sum{};
      for (const S& v : x) sum = Plus(sum, in.Call(functions::kAbs, {v}));
      return sum;
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  arithmetic.CountOperands(ReducedCount(node), inputs[0]);
  return SumOf(ReducedCount(node), Bound::Symbol());
}

OpDefinition Make() {
  OpDefinition op = ReduceOp("ReduceL1", &SampleReduceNumeric);
  op.meaning = MeaningOf<ReduceL1Meaning>();
  op.bound = &BoundOf;
  op.sign = &SignOfNorm;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::reduce_l1
