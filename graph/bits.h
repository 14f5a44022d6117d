// Operators on the bits of integers: oracles, since bits are no polynomial of numbers.
#ifndef MENDEL_GRAPH_BITS_H_
#define MENDEL_GRAPH_BITS_H_

#include <string_view>

#include "graph/elementwise.h"

namespace mendel {

/// A commutative `kFunction` of two operands, which NumPy's rules broadcast. Its oracle takes them
/// in a canonical order.
template <const ScalarFunction& kFunction>
struct BitsMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    const S a = in.Broadcast(0, i), b = in.Broadcast(1, i);
    if constexpr (std::is_same_v<S, Fp>) {
      if (b < a) return in.Call(kFunction, {b, a});
    }
    return in.Call(kFunction, {a, b});
  }
};

/// A function of integers as a ScalarFunction; u64 is carried modulo 2^64.
template <int64_t (*kInteger)(int64_t, int64_t)>
constexpr ScalarFunction BitsFunction(std::string_view name) {
  return {.name = name,
          .real =
              [](std::span<const double> x, std::span<const double>) {
                const auto a = static_cast<int64_t>(x[0]), b = static_cast<int64_t>(x[1]);
                return static_cast<double>(kInteger(a, b));
              },
          .integer = [](std::span<const int64_t> x,
                        std::span<const double>) { return kInteger(x[0], x[1]); }};
}

/// Integers of one type, not Booleans.
TypesOr InferBits(std::span<const TensorType> inputs, const Attributes& attrs);

/// An operator of two operands with these rules; its meaning is still to be set.
OpDefinition BitsOp(std::string_view name);
OpSample SampleBits(Rng& rng);

}  // namespace mendel

#endif  // MENDEL_GRAPH_BITS_H_
