// MaxPool(x[N, C, D...]): the largest element of each window, NaN when one is. Padding is left out:
// one symmetric oracle of the elements inside, and a symbol of its own for a window wholly in
// padding (minus infinity in doubles).

#include <algorithm>

#include "graph/functions.h"
#include "graph/pooling.h"
#include "graph/window_grid.h"

namespace mendel::ops::max_pool {
namespace {

struct MaxPoolMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillPool(in, PoolGeometry(node), out, [&](std::span<const S> x, size_t) {
      return functions::Extreme<true>(in, node.outputs[0].dtype, x);
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  arithmetic.CountOperands(PoolTaps(node), inputs[0]);
  return Either(Bound::Symbol(), inputs[0]);  // the oracle of equal elements is that element
}

/// Some window lies wholly in padding.
bool HasEmptyWindow(const NodeView& node) {
  const PoolGeometry geometry(node);
  return std::adjacent_find(geometry.start.begin(), geometry.start.end()) != geometry.start.end();
}

OpDefinition Make() {
  OpDefinition op = PoolOp("MaxPool");
  op.infer = &InferPool;
  op.meaning = MeaningOf<MaxPoolMeaning>();
  op.bound = &BoundOf;
  op.infinite = &HasEmptyWindow;
  return op;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "MaxPool", .restrict = [](const GridRequest& request) {
                                  return RestrictPoolGrid(request, false);
                                }});

}  // namespace
}  // namespace mendel::ops::max_pool
