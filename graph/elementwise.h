// Common parts of the elementwise operators: inference by dtype family, wrapping integer
// arithmetic, samples, and definitions made from one ScalarFunction, so that an operator's file
// states little more than its formula.
#ifndef MENDEL_GRAPH_ELEMENTWISE_H_
#define MENDEL_GRAPH_ELEMENTWISE_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "graph/fill.h"
#include "graph/op_helpers.h"

namespace mendel {

/// Inference. "Numeric" is every dtype but bool: sums and products of Booleans differ from those of
/// the field elements that represent them. Broadcast: all inputs and the output have one dtype, or
/// the output is bool. Same: the output has the type of input 0.
TypesOr InferBroadcastNumeric(std::span<const TensorType> inputs, const Attributes& attrs);
TypesOr InferBroadcastNumericToBool(std::span<const TensorType> inputs, const Attributes& attrs);
TypesOr InferBroadcastBool(std::span<const TensorType> inputs, const Attributes& attrs);
TypesOr InferSameNumeric(std::span<const TensorType> inputs, const Attributes& attrs);
TypesOr InferSameFloatToBool(std::span<const TensorType> inputs, const Attributes& attrs);

/// Samples. Dtypes are mostly f32; the others of the family occur too. Binary samples broadcast.
OpSample SampleUnaryFloat(Rng& rng);
OpSample SampleUnaryNumeric(Rng& rng);
OpSample SampleBinaryNumeric(Rng& rng);
OpSample SampleBinaryBool(Rng& rng);
/// SampleUnaryFloat with the elements in [low, high).
OpSample SampleUnaryIn(Rng& rng, double low, double high);

/// a + b, a - b, a * b and -a; integers wrap, as in every backend.
template <class S>
S Plus(const S& a, const S& b) {
  if constexpr (std::is_same_v<S, int64_t>) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class S>
S Minus(const S& a, const S& b) {
  if constexpr (std::is_same_v<S, int64_t>) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  } else {
    return a - b;
  }
}
template <class S>
S Times(const S& a, const S& b) {
  if constexpr (std::is_same_v<S, int64_t>) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}
template <class S>
S Negated(const S& a) {
  if constexpr (std::is_same_v<S, int64_t>) {
    return Minus<int64_t>(0, a);
  } else {
    return -a;
  }
}

/// max(x, 0). The oracle keeps the true axiom f(0) = 0, so that it commutes with zero
/// padding.
inline constexpr ScalarFunction kRelu = {
    .name = "Relu",
    .real = [](std::span<const double> x,
               std::span<const double>) { return x[0] > 0 ? x[0] : (x[0] == x[0] ? 0.0 : x[0]); },
    .integer = [](std::span<const int64_t> x,
                  std::span<const double>) { return x[0] > 0 ? x[0] : int64_t{0}; },
    .zero_at_zero = true};

/// Name, arity, restriction and access (one oracle of all operands) of an elementwise operator.
OpDefinition ElementwiseOp(std::string_view name, int inputs);
/// Bound of one oracle call on all inputs.
Bound BoundOfCall(const NodeView& node, std::span<const Bound> inputs, int output,
                  const Arithmetic<Bound>& arithmetic);

/// A scalar function's parameters (alpha, ...) as its ScalarFunction expects them.
using Parameters = std::vector<double>;
inline Parameters NoParameters(const NodeView&) { return {}; }

/// out[k] = f(input 0's element k). Balls cost much more than other scalars, so a few of them
/// already justify a thread.
template <class S>
void FillCalls(const Reader<S>& in, const ScalarFunction& f, const Parameters& parameters,
               std::span<S> out);

template <const ScalarFunction& F, Parameters (*P)(const NodeView&)>
struct UnaryMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillCalls(in, F, P(node), out);
  }
};

/// The operator F(x), named as F, on floats and, when F has an integer meaning, on integers. The
/// caller adds attributes (which `P` turns into parameters) and replaces what differs.
template <const ScalarFunction& F, Parameters (*P)(const NodeView&) = &NoParameters>
OpDefinition UnaryOp() {
  OpDefinition op = ElementwiseOp(F.name, 1);
  op.infer = F.integer != nullptr ? &InferSameNumeric : &InferSameFloat;
  op.meaning = MeaningOf<UnaryMeaning<F, P>>();
  op.bound = &BoundOfCall;
  op.sample = F.integer != nullptr ? &SampleUnaryNumeric : &SampleUnaryFloat;
  return op;
}

template <const ScalarFunction& F>
struct BinaryMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    return in.Call(F, {in.Broadcast(0, i), in.Broadcast(1, i)});
  }
};

/// The operator F(a, b) with broadcasting, named as F, on all numeric dtypes.
template <const ScalarFunction& F>
OpDefinition BinaryOp() {
  OpDefinition op = ElementwiseOp(F.name, 2);
  op.infer = &InferBroadcastNumeric;
  op.meaning = MeaningOf<BinaryMeaning<F>>();
  op.sample = &SampleBinaryNumeric;
  return op;
}

}  // namespace mendel

#endif  // MENDEL_GRAPH_ELEMENTWISE_H_
