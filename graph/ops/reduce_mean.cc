// ReduceMean(x): the mean over `axes`, of floats (a mean of integers would truncate, which no field
// does).

#include "graph/elementwise.h"
#include "graph/grid.h"
#include "graph/reduction.h"

namespace mendel::ops::reduce_mean {
namespace {

struct ReduceMeanMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const Divisor<S> divide(in, static_cast<int64_t>(ReducedCount(node)));
    FillReduction(in, node.attrs.IntList("axes"), out, [&](std::span<const S> x) {
      S sum{};
      for (const S& v : x) sum = Plus(sum, v);
      return divide(sum);
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  const double count = ReducedCount(node);
  return SumOf(count, inputs[0]) / arithmetic.Literal(count);
}

OpDefinition Make() {
  OpDefinition op = ReduceOp("ReduceMean", &SampleReduceFloat);
  op.meaning = MeaningOf<ReduceMeanMeaning>();
  op.bound = &BoundOf;
  op.linear_inputs = &LinearInFirst;
  op.access = &AccessReduceSum;
  op.sign = &SignOfReduction;
  return op;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "ReduceMean", .ignores_even_repeats = true});

}  // namespace
}  // namespace mendel::ops::reduce_mean
