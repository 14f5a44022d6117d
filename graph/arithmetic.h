// The six number systems that evaluate an operator's meaning: doubles, exact integers, GF(p),
// bounds, balls and abstract elements.
//
// An operator's meaning is written once, as a template over the scalar S, using + - * and the
// members of Arithmetic<S> below for everything else. What is not polynomial goes through Call: a
// double evaluates the function, GF(p) queries a keyed random oracle (docs/verifier.md,
// "Evaluation"), a bound becomes a fresh symbol, and a ball encloses the function's values.
#ifndef MENDEL_GRAPH_ARITHMETIC_H_
#define MENDEL_GRAPH_ARITHMETIC_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/ball.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/prime_field.h"
#include "graph/bound.h"
#include "graph/extended.h"

namespace mendel {

/// A function of scalars that is not a polynomial; its name identifies it to the oracles.
/// `parameters` (alpha of Elu, ...) are part of the oracle's identity.
struct ScalarFunction {
  std::string_view name;
  double (*real)(std::span<const double> arguments, std::span<const double> parameters);
  /// Exact meaning on integers; null when the function is not defined on them.
  int64_t (*integer)(std::span<const int64_t> arguments,
                     std::span<const double> parameters) = nullptr;
  /// The axiom f(0) = 0 (one argument). State it only where it is true: never for sigmoid.
  bool zero_at_zero = false;
  /// The value does not depend on the order or repetition of the arguments (max, min).
  bool symmetric = false;
  /// The infinity that adds nothing to a set of arguments of a symmetric function; NaN: none.
  double neutral = std::numeric_limits<double>::quiet_NaN();
};

template <class S>
class Arithmetic;

template <>
class Arithmetic<double> {
 public:
  double Literal(double exact) const { return exact; }
  double FromInteger(int64_t value) const { return static_cast<double>(value); }
  double Divide(double a, double b) const { return a / b; }
  double Call(const ScalarFunction& f, std::span<const double> arguments,
              std::span<const double> parameters = {}) const {
    return f.real(arguments, parameters);
  }
  /// `condition` is 0 or 1.
  double Select(double condition, double yes, double no) const { return condition != 0 ? yes : no; }
};

template <>
class Arithmetic<int64_t> {
 public:
  int64_t Literal(double exact) const { return static_cast<int64_t>(exact); }
  int64_t FromInteger(int64_t value) const { return value; }
  /// ONNX integer division truncates; division by zero gives 0.
  int64_t Divide(int64_t a, int64_t b) const {
    return b == 0 ? 0 : (b == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a / b);
  }
  int64_t Call(const ScalarFunction& f, std::span<const int64_t> arguments,
               std::span<const double> parameters = {}) const {
    MENDEL_CHECK(f.integer != nullptr);
    return f.integer(arguments, parameters);
  }
  int64_t Select(int64_t condition, int64_t yes, int64_t no) const {
    return condition != 0 ? yes : no;
  }
};

/// GF(p) of the thread's FieldScope with oracles under `key`. Each test has one object. Threads of
/// one parallel loop may share it; zero_denominator() is read after they have joined.
template <>
class Arithmetic<Fp> {
 public:
  explicit Arithmetic(std::array<uint64_t, 2> key) : key_(key) {}

  /// NaN and the infinities are one keyed symbol each.
  Fp Literal(double exact) const {
    return std::isfinite(exact) ? Fp{FieldScope::Current().FromDouble(exact)} : NonFinite(exact);
  }
  Fp FromInteger(int64_t value) const { return {FieldScope::Current().FromInt(value)}; }
  /// Division by zero gives 0 and sets zero_denominator(): the draw must then be repeated.
  Fp Divide(Fp a, Fp b) const {
    if (b.value == 0) {
      std::atomic_ref<bool>(zero_denominator_).store(true, std::memory_order_relaxed);
      return {0};
    }
    return {FieldScope::Current().Mul(a.value, FieldScope::Current().Inverse(b.value))};
  }
  Fp Call(const ScalarFunction& f, std::span<const Fp> arguments,
          std::span<const double> parameters = {}) const;
  Fp Select(Fp condition, Fp yes, Fp no) const;

  Fp NonFinite(double value) const;
  bool zero_denominator() const { return zero_denominator_; }
  std::array<uint64_t, 2> key() const { return key_; }

 private:
  std::array<uint64_t, 2> key_;
  mutable bool zero_denominator_ = false;
};

/// Bounds. Counts the scalar operands of oracle calls and the largest degree among them.
template <>
class Arithmetic<Bound> {
 public:
  /// A dyadic literal m 2^e: |m| enters the numerator's norm and 2^-e the denominator's when e < 0.
  Bound Literal(double exact) const;
  Bound FromInteger(int64_t value) const { return Literal(static_cast<double>(value)); }
  Bound Divide(const Bound& a, const Bound& b) const { return a / b; }
  Bound Call(const ScalarFunction& f, std::span<const Bound> arguments,
             std::span<const double> parameters = {}) const;
  Bound Select(const Bound& condition, const Bound& yes, const Bound& no) const;

  /// Scalar operands of oracle calls so far, and a bound that covers each of them.
  double operand_count() const { return operand_count_; }
  const Bound& worst_operand() const { return worst_operand_; }
  void CountOperands(double count, const Bound& operand) const {
    operand_count_ += count;
    worst_operand_ = Either(worst_operand_, operand);
  }

 private:
  mutable double operand_count_ = 0;
  mutable Bound worst_operand_;
};

/// Balls in the thread's BallScope. Functions are found by name (graph/ball_functions.cc); a
/// missing one fails the context.
template <>
class Arithmetic<Ball> {
 public:
  Ball Literal(double exact) const { return Ball::FromDouble(exact); }
  Ball FromInteger(int64_t value) const { return Ball::FromInt(value); }
  Ball Divide(const Ball& a, const Ball& b) const { return a / b; }
  Ball Call(const ScalarFunction& f, std::span<const Ball> arguments,
            std::span<const double> parameters = {}) const;
  /// The hull of both when `condition` is open.
  Ball Select(const Ball& condition, const Ball& yes, const Ball& no) const;
};

/// Abstract elements of the thread's ExtendedScope (graph/extended_functions.cc).
template <>
class Arithmetic<Extended> {
 public:
  Extended Literal(double exact) const { return ExtendedLiteral(exact); }
  Extended FromInteger(int64_t value) const { return ExtendedInteger(value); }
  Extended Divide(const Extended& a, const Extended& b) const { return a / b; }
  Extended Call(const ScalarFunction& f, std::span<const Extended> arguments,
                std::span<const double> parameters = {}) const;
  /// One of two values; both their events count, each under its condition.
  Extended Select(const Extended& condition, const Extended& yes, const Extended& no) const;
};

}  // namespace mendel

#endif  // MENDEL_GRAPH_ARITHMETIC_H_
