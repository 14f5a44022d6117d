// Values as literal multiples of others.
#ifndef MENDEL_VERIFIER_AXIOMS_SCALED_H_
#define MENDEL_VERIFIER_AXIOMS_SCALED_H_

#include <optional>

#include "verifier/axioms/terms.h"

namespace mendel {

/// A value that is -x, x * factor or x / factor, the literal being positive; canonical products
/// have these outermost.
struct Scaled {
  enum class Kind : uint8_t { kNegated, kTimes, kOver };
  Kind kind = Kind::kNegated;
  double factor = 1;
  ValueId x;

  bool SameScale(const Scaled& other) const { return kind == other.kind && factor == other.factor; }
};

/// The outermost factor of `value`, whose x has the same shape.
inline std::optional<Scaled> AsScaled(const Terms& terms, ValueId value) {
  if (!IsFloat(terms.dtype(value))) return std::nullopt;
  if (terms.Is(value, "Neg")) return Scaled{Scaled::Kind::kNegated, 1, terms.in(value, 0)};
  const bool times = terms.Is(value, "Mul");
  if (!times && !terms.Is(value, "Div")) return std::nullopt;
  const std::optional<double> factor = terms.Scalar(terms.in(value, 1));
  if (!factor.has_value() || !(*factor > 0)) return std::nullopt;
  return Scaled{times ? Scaled::Kind::kTimes : Scaled::Kind::kOver, *factor, terms.in(value, 0)};
}

/// `x` with the factor of `scale`.
inline ValueId Scale(Terms& terms, ValueId x, const Scaled& scale) {
  if (scale.kind == Scaled::Kind::kNegated) return terms.Unary("Neg", x);
  return scale.kind == Scaled::Kind::kTimes ? terms.Mul(x, scale.factor)
                                            : terms.Div(x, scale.factor);
}

}  // namespace mendel

#endif  // MENDEL_VERIFIER_AXIOMS_SCALED_H_
