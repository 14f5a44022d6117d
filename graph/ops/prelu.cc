// PRelu(x, slope) = x where x >= 0, else slope x; slope broadcasts to x. Stated through Relu,
// Relu(x) - slope Relu(-x), so that it is 0 at 0 and linear in the slope in the field too.

#include <type_traits>

#include "base/status.h"
#include "graph/comparison.h"
#include "graph/elementwise.h"

namespace mendel::ops::prelu {
namespace {

struct PReluMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    const S x = in(0, i);
    // The slope counts below zero only: an undefined one does not matter elsewhere.
    if constexpr (std::is_same_v<S, double> || std::is_same_v<S, Extended> ||
                  std::is_same_v<S, Ball>)
      return in.Select(in.Call(kLess, {x, in.Literal(0)}), Times(in.Broadcast(1, i), x), x);
    return Minus(in.Call(kRelu, {x}), Times(in.Broadcast(1, i), in.Call(kRelu, {Negated(x)})));
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  MENDEL_ASSIGN_OR_RETURN(std::vector<TensorType> types, InferBroadcastNumeric(inputs, attrs));
  if (types[0] != inputs[0]) {
    return InvalidInput("slope ", TypeString(inputs[1]), " does not broadcast to ",
                        TypeString(inputs[0]));
  }
  return types;
}

OpSample Sample(Rng& rng) {
  OpSample sample = SampleUnaryNumeric(rng);
  sample.inputs.push_back(
      {sample.inputs[0].dtype, SampleBroadcastable(rng, sample.inputs[0].shape)});
  return sample;
}

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("PRelu", 2);
  op.infer = &Infer;
  op.meaning = MeaningOf<PReluMeaning>();
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::prelu
