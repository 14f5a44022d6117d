// Reciprocal(x) = 1 / x: exact division, so that x * Reciprocal(y) = x / y.

#include <type_traits>
#include <vector>

#include "graph/elementwise.h"
#include "graph/fill.h"

namespace mendel::ops::reciprocal {
namespace {

/// out = 1 / x, by one inversion and three products an element (Montgomery, 1987). False, leaving
/// `out` alone, when some x is 0.
bool InvertAll(const Reader<Fp>& in, int64_t begin, std::span<Fp> out) {
  std::vector<Fp> products(out.size());  // of the elements before each
  Fp product = in.FromInteger(1);
  for (size_t k = 0; k < out.size(); ++k) {
    products[k] = product;
    product *= in.Flat(0, begin + static_cast<int64_t>(k));
  }
  if (product.value == 0) return false;
  Fp inverse = in.Divide(in.FromInteger(1), product);
  for (size_t k = out.size(); k-- > 0;) {
    const Fp x = in.Flat(0, begin + static_cast<int64_t>(k));
    out[k] = inverse * products[k];
    inverse *= x;
  }
  return true;
}

struct ReciprocalMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView&, int, std::span<S> out) {
    constexpr int64_t kBlock = 1024;
    const int64_t count = static_cast<int64_t>(out.size());
    ForRanges<S>(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; block += kBlock) {
        const int64_t size = std::min(kBlock, end - block);
        if constexpr (std::is_same_v<S, Fp>) {
          if (InvertAll(in, block,
                        out.subspan(static_cast<size_t>(block), static_cast<size_t>(size))))
            continue;
        }
        for (int64_t k = block; k < block + size; ++k)
          out[static_cast<size_t>(k)] = in.Divide(in.FromInteger(1), in.Flat(0, k));
      }
    });
  }
};

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("Reciprocal", 1);
  op.infer = &InferSameFloat;
  op.meaning = MeaningOf<ReciprocalMeaning>();
  op.bound = [](const NodeView&, std::span<const Bound> inputs, int,
                const Arithmetic<Bound>& arithmetic) {
    return arithmetic.Divide(arithmetic.FromInteger(1), inputs[0]);
  };
  op.sample = [](Rng& rng) { return SampleUnaryIn(rng, 0.5, 2); };
  op.domain = {{.demand = Demand::kNonZero, .group = "denominator"}};
  op.sign = &SignOfFirst;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::reciprocal
