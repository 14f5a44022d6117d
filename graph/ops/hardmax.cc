// Hardmax(x): 1 at the first of the largest elements along `axis`, 0 elsewhere. Depends on order,
// so opaque to the verifier.

#include "graph/lines.h"

namespace mendel::ops::hardmax {
namespace {

struct HardmaxMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillLines(in, node.attrs.Int("axis"), out, [&](std::span<S> x) {
      const auto first = std::max_element(x.begin(), x.end());
      const auto best = first - x.begin();
      std::fill(x.begin(), x.end(), S{});
      x[static_cast<size_t>(best)] = in.FromInteger(1);
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  arithmetic.CountOperands(LineLength(node), inputs[0]);
  return Bound::Symbol();
}

OpDefinition Make() {
  OpDefinition op = LineOp("Hardmax");
  op.meaning = MeaningOf<HardmaxMeaning>();
  op.opaque = true;
  op.bound = &BoundOf;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::hardmax
