// LogSoftmax(x) = x - log(sum of exp(x)) along `axis`. In doubles the largest element is subtracted
// first.

#include "graph/elementwise.h"
#include "graph/functions.h"
#include "graph/lines.h"

namespace mendel::ops::log_softmax {
namespace {

struct LogSoftmaxMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillLines(in, node.attrs.Int("axis"), out, [&](std::span<S> x) {
      S shift{};
      if constexpr (std::is_same_v<S, double> || std::is_same_v<S, Extended>)
        shift = in.Call(functions::kMax, x);
      S sum{};
      for (const S& v : x) sum = Plus(sum, in.Call(functions::kExp, {Minus(v, shift)}));
      const S log = in.Call(functions::kLog, {sum});
      for (S& v : x) v = Minus(Minus(v, shift), log);
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  arithmetic.CountOperands(LineLength(node), inputs[0]);
  arithmetic.CountOperands(1, SumOf(LineLength(node), Bound::Symbol()));
  return inputs[0] - Bound::Symbol();
}

OpDefinition Make() {
  OpDefinition op = LineOp("LogSoftmax");
  op.meaning = MeaningOf<LogSoftmaxMeaning>();
  op.bound = &BoundOf;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::log_softmax
