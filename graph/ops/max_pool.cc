// MaxPool(x[N, C, D...]): the largest element of each window, NaN when one is. Padding is left out: one symmetric oracle of the
// elements inside, and a symbol of its own for a window wholly in padding (minus infinity in doubles).

#include "graph/functions.h"
#include "graph/pooling.h"

namespace mendel::ops::max_pool {
namespace {

struct MaxPoolMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillPool(in, PoolGeometry(node), out, [&](std::span<const S> x, size_t) {
      return x.empty() ? in.Call(functions::kMaxOfNothing, x) : in.Call(functions::kMax, x);
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int, const Arithmetic<Bound>& arithmetic) {
  arithmetic.CountOperands(PoolTaps(node), inputs[0]);
  return Either(Bound::Symbol(), inputs[0]);  // the oracle of equal elements is that element
}

OpDefinition Make() {
  OpDefinition op = PoolOp("MaxPool");
  op.infer = &InferPool;
  op.meaning = MeaningOf<MaxPoolMeaning>();
  op.bound = &BoundOf;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::max_pool
