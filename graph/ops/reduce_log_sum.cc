// ReduceLogSum(x): the logarithm of the sum over `axes`.

#include "graph/elementwise.h"
#include "graph/functions.h"
#include "graph/reduction.h"

namespace mendel::ops::reduce_log_sum {
namespace {

struct ReduceLogSumMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillReduction(in, node.attrs.IntList("axes"), out, [&](std::span<const S> x) {
      S sum{};
      for (const S& v : x) sum = Plus(sum, v);
      return in.Call(functions::kLog, {sum});
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  arithmetic.CountOperands(1, SumOf(ReducedCount(node), inputs[0]));
  return Bound::Symbol();
}

OpSample Sample(Rng& rng) {
  OpSample sample = SampleReduceFloat(rng);
  sample.ranges = {{0, {0.5, 4}}};
  return sample;
}

OpDefinition Make() {
  OpDefinition op = ReduceOp("ReduceLogSum", &Sample);
  op.meaning = MeaningOf<ReduceLogSumMeaning>();
  op.bound = &BoundOf;
  op.domain = {{.demand = Demand::kPositive}};
  op.infinite = [](const NodeView& node) { return ReducedCount(node) == 0; };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::reduce_log_sum
