// Softmax(x): exp(x) divided by its sum along `axis`. In doubles the largest element is subtracted
// first.

#include "graph/elementwise.h"
#include "graph/functions.h"
#include "graph/lines.h"

namespace mendel::ops::softmax {
namespace {

struct SoftmaxMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillLines(in, node.attrs.Int("axis"), out, [&](std::span<S> x) {
      S shift{};
      if constexpr (std::is_same_v<S, double> || std::is_same_v<S, Extended>)
        shift = in.Call(functions::kMax, x);
      S sum{};
      for (S& v : x) {
        v = in.Call(functions::kExp, {Minus(v, shift)});
        sum = Plus(sum, v);
      }
      if constexpr (std::is_same_v<S, Fp>) {
        const S inverse = in.Divide(in.FromInteger(1), sum);
        for (S& v : x) v *= inverse;
      } else {
        for (S& v : x) v = in.Divide(v, sum);
      }
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  arithmetic.CountOperands(LineLength(node), inputs[0]);
  return Bound::Symbol() / SumOf(LineLength(node), Bound::Symbol());
}

OpDefinition Make() {
  OpDefinition op = LineOp("Softmax");
  op.meaning = MeaningOf<SoftmaxMeaning>();
  op.bound = &BoundOf;
  op.sign = &SignPositive;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::softmax
