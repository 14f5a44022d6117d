// ReduceMin(x): the smallest element over `axes`, NaN when one is; infinity over nothing. One
// symmetric oracle of the set.

#include "graph/functions.h"
#include "graph/grid.h"
#include "graph/reduction.h"

namespace mendel::ops::reduce_min {
namespace {

struct ReduceMinMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillReduction(in, node.attrs.IntList("axes"), out, [&](std::span<const S> x) {
      return functions::Extreme<false>(in, node.outputs[0].dtype, x);
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  arithmetic.CountOperands(ReducedCount(node), inputs[0]);
  return Either(Bound::Symbol(), inputs[0]);  // the oracle of equal elements is that element
}

OpDefinition Make() {
  OpDefinition op = ReduceOp("ReduceMin", &SampleReduceNumeric);
  op.meaning = MeaningOf<ReduceMinMeaning>();
  op.bound = &BoundOf;
  op.infer = &InferReduceAny;
  op.sign = &SignOfReduction;
  op.infinite = [](const NodeView& node) { return ReducedCount(node) == 0; };
  return op;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "ReduceMin", .ignores_even_repeats = true});

}  // namespace
}  // namespace mendel::ops::reduce_min
