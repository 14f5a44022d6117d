// ReduceMin(x): the smallest element over `axes`, NaN when one is; infinity over nothing. One symmetric oracle of the set.

#include "graph/functions.h"
#include "graph/reduction.h"

namespace mendel::ops::reduce_min {
namespace {

struct ReduceMinMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillReduction(in, node.attrs.IntList("axes"), out, [&](std::span<const S> x) {
      return x.empty() ? in.Call(functions::kMinOfNothing, x) : in.Call(functions::kMin, x);
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int, const Arithmetic<Bound>& arithmetic) {
  arithmetic.CountOperands(ReducedCount(node), inputs[0]);
  return Either(Bound::Symbol(), inputs[0]);  // the oracle of equal elements is that element
}

OpDefinition Make() {
  OpDefinition op = ReduceOp("ReduceMin", &SampleReduceNumeric);
  op.meaning = MeaningOf<ReduceMinMeaning>();
  op.bound = &BoundOf;
  op.infer = &InferReduceAny;
  op.sign = &SignOfReduction;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::reduce_min
