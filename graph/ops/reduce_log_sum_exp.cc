// ReduceLogSumExp(x): log(sum of exp(x)) over `axes`. In doubles the largest element is subtracted
// first, so that nothing overflows.

#include <cmath>
#include <type_traits>

#include "graph/elementwise.h"
#include "graph/functions.h"
#include "graph/reduction.h"

namespace mendel::ops::reduce_log_sum_exp {
namespace {

struct ReduceLogSumExpMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillReduction(in, node.attrs.IntList("axes"), out, [&](std::span<const S> x) {
      S shift{};
      if constexpr (std::is_same_v<S, double>) {
        if (!x.empty()) shift = functions::kMax.real(x, {});
        if (!std::isfinite(shift)) shift = 0;
      }
      S sum{};
      for (const S& v : x) sum = Plus(sum, in.Call(functions::kExp, {Minus(v, shift)}));
      return Plus(shift, in.Call(functions::kLog, {sum}));
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  const double count = ReducedCount(node);
  arithmetic.CountOperands(count, inputs[0]);
  arithmetic.CountOperands(1, SumOf(count, Bound::Symbol()));
  return Bound::Symbol();
}

OpDefinition Make() {
  OpDefinition op = ReduceOp("ReduceLogSumExp", &SampleReduceFloat);
  op.meaning = MeaningOf<ReduceLogSumExpMeaning>();
  op.bound = &BoundOf;
  op.infinite = [](const NodeView& node) { return ReducedCount(node) == 0; };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::reduce_log_sum_exp
