// Equal(a, b) with NumPy broadcasting, of any dtype. Its oracle takes the operands in a canonical
// order; it is not one of the "symmetric" oracles, for which f(a, a) = a.

#include "graph/comparison.h"

namespace mendel::ops::equal {
namespace {

constexpr ScalarFunction kEqual = {
    .name = "Equal",
    .real = [](std::span<const double> x,
               std::span<const double>) { return x[0] == x[1] ? 1.0 : 0.0; },
    .integer = [](std::span<const int64_t> x,
                  std::span<const double>) { return int64_t{x[0] == x[1]}; }};

struct EqualMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    if constexpr (std::is_same_v<S, Fp>) {
      const bool swapped = in.Broadcast(1, i) < in.Broadcast(0, i);
      return swapped ? Compare<kEqual, S>(in, 1, 0, i) : Compare<kEqual, S>(in, 0, 1, i);
    } else {
      return Compare<kEqual, S>(in, 0, 1, i);
    }
  }
};

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("Equal", 2);
  op.infer = &InferBroadcastToBool;
  op.meaning = MeaningOf<EqualMeaning>();
  op.sample = [](Rng& rng) {
    return rng.Flip(0.2) ? SampleBinaryBool(rng) : SampleBinaryNumeric(rng);
  };
  op.storage = StorageTypes::kU64;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::equal
