// Selection: Where(c, a, b) is a where the Boolean c is true, else b, with NumPy broadcasting. A
// condition known only at run time makes it an oracle of its three operands.

#include "base/status.h"
#include "graph/elementwise.h"

namespace mendel::ops::where {
namespace {

struct WhereMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    if (in.IsConcrete(0))
      return in.Broadcast(in.IntegerFlat(0, in.BroadcastOffset(0, i)) != 0 ? 1 : 2, i);
    return in.Select(in.Broadcast(0, i), in.Broadcast(1, i), in.Broadcast(2, i));
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  if (inputs[0].dtype != DType::kBool)
    return InvalidInput("the condition must be Boolean, not ", TypeString(inputs[0]));
  const std::vector<TensorType> alike = {{inputs[1].dtype, inputs[0].shape}, inputs[1], inputs[2]};
  return InferBroadcast(alike, attrs);
}

/// The bound covers a run-time condition and a known one, whatever it selects.
Bound BoundOf(const NodeView&, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  return arithmetic.Select(inputs[0], inputs[1], inputs[2]);
}

OpSample Sample(Rng& rng) {
  OpSample sample = rng.Flip(0.2) ? SampleBinaryBool(rng) : SampleBinaryNumeric(rng);
  const Shape larger = *BroadcastShapes(sample.inputs[0].shape, sample.inputs[1].shape);
  sample.inputs.insert(sample.inputs.begin(),
                       {DType::kBool, rng.Flip() ? larger : SampleBroadcastable(rng, larger)});
  return sample;
}

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("Where", 3);
  op.infer = &Infer;
  op.meaning = MeaningOf<WhereMeaning>();
  op.bound = &BoundOf;
  op.sample = &Sample;
  op.sign = [](const NodeView&, std::span<const Sign> inputs, bool) {
    return std::min(inputs[1], inputs[2]);
  };
  op.storage = StorageTypes::kAll;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::where
