// The order comparisons, through two oracles, so that Greater(a, b) and Less(b, a) agree, and
// GreaterOrEqual and LessOrEqual.
//
// LessOrEqual(a, b) is not stated as Not(Less(b, a)): the two differ for NaN.
#ifndef MENDEL_GRAPH_COMPARISON_H_
#define MENDEL_GRAPH_COMPARISON_H_

#include <array>
#include <string_view>
#include <type_traits>

#include "graph/elementwise.h"

namespace mendel {

inline constexpr ScalarFunction kLess = {
    .name = "Less",
    .real = [](std::span<const double> x,
               std::span<const double>) { return x[0] < x[1] ? 1.0 : 0.0; },
    .integer = [](std::span<const int64_t> x,
                  std::span<const double>) { return int64_t{x[0] < x[1]}; }};

inline constexpr ScalarFunction kLessOrEqual = {
    .name = "LessOrEqual",
    .real = [](std::span<const double> x,
               std::span<const double>) { return x[0] <= x[1] ? 1.0 : 0.0; },
    .integer = [](std::span<const int64_t> x,
                  std::span<const double>) { return int64_t{x[0] <= x[1]}; }};

/// F(input a, input b) at `i`, decided when both are known integers. (A bound covers both answers
/// as an oracle's value.)
template <const ScalarFunction& F, class S>
S Compare(const Reader<S>& in, int a, int b, Index i) {
  if constexpr (!std::is_same_v<S, Bound>) {
    if (in.IsConcrete(a) && in.IsConcrete(b)) {
      const std::array<int64_t, 2> arguments = {in.IntegerFlat(a, in.BroadcastOffset(a, i)),
                                                in.IntegerFlat(b, in.BroadcastOffset(b, i))};
      return in.FromInteger(F.integer(arguments, {}));
    }
  }
  return in.Call(F, {in.Broadcast(a, i), in.Broadcast(b, i)});
}

template <const ScalarFunction& F, bool kSwapped>
struct CompareMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    return kSwapped ? Compare<F, S>(in, 1, 0, i) : Compare<F, S>(in, 0, 1, i);
  }
};

/// The operator F(a, b), or F(b, a) when `kSwapped`.
template <const ScalarFunction& F, bool kSwapped>
OpDefinition CompareOp(std::string_view name) {
  OpDefinition op = ElementwiseOp(name, 2);
  op.infer = &InferBroadcastNumericToBool;
  op.meaning = MeaningOf<CompareMeaning<F, kSwapped>>();
  op.sample = &SampleBinaryNumeric;
  return op;
}

}  // namespace mendel

#endif  // MENDEL_GRAPH_COMPARISON_H_
