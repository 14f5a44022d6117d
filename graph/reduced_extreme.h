// ReduceMax and ReduceMin: the extreme element over `axes`, NaN when one is. One symmetric oracle
// of the set.
#ifndef MENDEL_GRAPH_REDUCED_EXTREME_H_
#define MENDEL_GRAPH_REDUCED_EXTREME_H_

#include <string_view>

#include "graph/functions.h"
#include "graph/reduction.h"

namespace mendel {

template <bool greatest>
struct ReducedExtremeMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillReduction(in, node.attrs.IntList("axes"), out, [&](std::span<const S> x) {
      return functions::Extreme<greatest>(in, node.outputs[0].dtype, x);
    });
  }
};

/// The oracle of equal elements is that element.
inline Bound BoundOfReducedExtreme(const NodeView& node, std::span<const Bound> inputs, int,
                                   const Arithmetic<Bound>& arithmetic) {
  arithmetic.CountOperands(ReducedCount(node), inputs[0]);
  return Either(Bound::Symbol(), inputs[0]);
}

template <bool greatest>
OpDefinition ReducedExtremeOp(std::string_view name) {
  OpDefinition op = ReduceOp(name, &SampleReduceNumeric);
  op.meaning = MeaningOf<ReducedExtremeMeaning<greatest>>();
  op.bound = &BoundOfReducedExtreme;
  op.infer = &InferReduceAny;
  op.sign = &SignOfReduction;
  op.infinite = [](const NodeView& node) { return ReducedCount(node) == 0; };
  return op;
}

}  // namespace mendel

#endif  // MENDEL_GRAPH_REDUCED_EXTREME_H_
