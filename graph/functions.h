// Scalar functions that several operators call. Oracles are distinguished by name only, so that
// Softmax and a graph of Exp, ReduceSum and Div agree: a name here and in an operator's own file
// must mean the same function with the same axioms.
#ifndef MENDEL_GRAPH_FUNCTIONS_H_
#define MENDEL_GRAPH_FUNCTIONS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "graph/meaning.h"
#include "graph/types.h"

namespace mendel::functions {

using Reals = std::span<const double>;
using Integers = std::span<const int64_t>;

inline constexpr ScalarFunction kExp = {.name = "Exp",
                                        .real = [](Reals x, Reals) { return std::exp(x[0]); }};
inline constexpr ScalarFunction kLog = {.name = "Log",
                                        .real = [](Reals x, Reals) { return std::log(x[0]); }};
inline constexpr ScalarFunction kSqrt = {
    .name = "Sqrt", .real = [](Reals x, Reals) { return std::sqrt(x[0]); }, .zero_at_zero = true};
inline constexpr ScalarFunction kRsqrt = {
    .name = "Rsqrt", .real = [](Reals x, Reals) { return 1 / std::sqrt(x[0]); }};
inline constexpr ScalarFunction kPow = {
    .name = "Pow", .real = [](Reals x, Reals) { return std::pow(x[0], x[1]); }};
inline constexpr ScalarFunction kAbs = {
    .name = "Abs",
    .real = [](Reals x, Reals) { return std::abs(x[0]); },
    .integer =
        [](Integers x, Reals) {
          return x[0] < 0 ? static_cast<int64_t>(0 - static_cast<uint64_t>(x[0])) : x[0];
        },
    .zero_at_zero = true};

/// Largest and smallest of any positive number of arguments; NaN when one of them is.
inline constexpr ScalarFunction kMax = {
    .name = "Max",
    .real =
        [](Reals x, Reals) {
          double best = x[0];
          for (double v : x) best = v > best || std::isnan(v) ? v : best;
          return best;
        },
    .integer = [](Integers x, Reals) { return *std::max_element(x.begin(), x.end()); },
    .symmetric = true,
    .neutral = -std::numeric_limits<double>::infinity()};
inline constexpr ScalarFunction kMin = {
    .name = "Min",
    .real =
        [](Reals x, Reals) {
          double best = x[0];
          for (double v : x) best = v < best || std::isnan(v) ? v : best;
          return best;
        },
    .integer = [](Integers x, Reals) { return *std::min_element(x.begin(), x.end()); },
    .symmetric = true,
    .neutral = std::numeric_limits<double>::infinity()};

/// The largest element of `x`, or the smallest. Of nothing: the least or the largest number of the
/// dtype, which is what neither adds to a set.
template <bool kLargest, class S>
S Extreme(const Reader<S>& in, DType dtype, std::span<const S> x) {
  if (!x.empty()) return in.Call(kLargest ? kMax : kMin, x);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (IsFloat(dtype)) return in.Literal(kLargest ? -kInfinity : kInfinity);
  return in.FromInteger(kLargest ? LowestInteger(dtype) : HighestInteger(dtype));
}

}  // namespace mendel::functions

#endif  // MENDEL_GRAPH_FUNCTIONS_H_
