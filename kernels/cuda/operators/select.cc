// Elementwise operators that are more than one formula.

#include <cmath>
#include <limits>
#include <numbers>

#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda::texts::select {
namespace {

/// The integer bounds that act as these real ones.
std::string ClipIntegers(const ElementAt& at, double low, double high) {
  std::string x = at.In(0);
  if (low >= 0x1p63) x = LiteralOf(DType::kI64, std::numeric_limits<int64_t>::max());
  if (low > -0x1p63 && low < 0x1p63)
    x = Cat("Max(", x, ", ", LiteralOf(DType::kI64, static_cast<int64_t>(std::ceil(low))), ")");
  if (high < -0x1p63) x = LiteralOf(DType::kI64, std::numeric_limits<int64_t>::min());
  if (high >= -0x1p63 && high < 0x1p63) {
    x = Cat("Min(", x, ", ", LiteralOf(DType::kI64, static_cast<int64_t>(std::floor(high))), ")");
  }
  return x;
}

std::string ClipElement(const ElementAt& at) {
  const double low = at.view.attrs.Float("min"), high = at.view.attrs.Float("max");
  if (!IsFloat(at.dtype())) return ClipIntegers(at, low, high);
  return Cat("Clip(", at.In(0), ", ", at.Literal(low), ", ", at.Literal(high), ")");
}

/// Real numbers round or truncate; integers wrap, also on their way to a narrower float, which goes
/// by f32 (one rounding to the target's own store).
std::string CastElement(const ElementAt& at) {
  const DType from = at.dtype(0), to = at.dtype();
  const std::string x =
      from == DType::kU64 && IsFloat(to) ? Cat("static_cast<Word>(", at.In(0), ")") : at.In(0);
  if (to == DType::kU64 && IsFloat(from)) return Cat("ToWord(static_cast<double>(", x, "))");
  if (to == DType::kBool) return Cat(x, " != ", LiteralOf(from, 0.0));
  if (IsFloat(to)) {
    const std::string narrow = to == DType::kF64 ? x : Cat("static_cast<float>(", x, ")");
    if (to == DType::kF64 || to == DType::kF32)
      return Cat("static_cast<", RealName(to), ">(", narrow, ")");
    return Cat(StorageName(to), "::Load(", StorageName(to), "::Store(", narrow, "))");
  }
  return Cat("static_cast<long long>(", "static_cast<", StoredName(to), ">(static_cast<long long>(",
             x, ")))");
}

std::string BitShiftElement(const ElementAt& at) {
  const bool word = at.dtype() == DType::kU64;
  const std::string_view right = word ? "ShiftWordRight" : "ShiftRight";
  return Cat(at.view.attrs.Str("direction") == "LEFT" ? "ShiftLeft" : right, "(", at.In(0), ", ",
             at.In(1), ")");
}

std::string GeluElement(const ElementAt& at) {
  const std::string x = at.In(0);
  if (at.view.attrs.Str("approximate") == "none") {
    return Cat(at.Literal(0.5), " * ", x, " * Erfc(-", x, " * ",
               at.Literal(1 / std::numbers::sqrt2), ")");
  }
  return Cat(at.Literal(0.5), " * ", x, " * (", at.Literal(1), " + Tanh(",
             at.Literal(std::sqrt(2 / std::numbers::pi)), " * (", x, " + ", at.Literal(0.044715),
             " * ", x, " * ", x, " * ", x, ")))");
}

/// Base and exponent may differ in type; the result has the base's. Mixed with an integer they are
/// raised in double.
std::string PowElement(const ElementAt& at) {
  const std::string base = at.In(0), exponent = at.In(1);
  const bool whole = !IsFloat(at.dtype(0)) && !IsFloat(at.dtype(1));
  const std::string_view type = whole ? "long long" : (IsFloat(at.dtype()) ? at.real() : "double");
  const auto as = [&](const std::string& x) { return Cat("static_cast<", type, ">(", x, ")"); };
  return Cat("static_cast<", at.real(), ">(Power(", as(base), ", ", as(exponent), "))");
}

std::string WhereElement(const ElementAt& at) {
  const std::string condition = at.In(0), yes = at.In(1), no = at.In(2);
  return Cat(condition, " != 0 ? ", yes, " : ", no);
}

/// Every channel of x with its own factor and bias.
std::string BatchNormalizationElement(const ElementAt& at) {
  const std::string x = at.In(0);
  const Position channel{{at.position.at[1]}, {at.position.RootOf(1)}};
  const std::string scale = at.In(1, channel), bias = at.In(2, channel), mean = at.In(3, channel),
                    variance = at.In(4, channel);
  return Cat("(", x, " - ", mean, ") * (", scale, " / Sqrt(", variance, " + ",
             at.Literal(at.view.attrs.Float("epsilon")), ")) + ", bias);
}

MENDEL_REGISTER_OPERATOR_TEXTS({
    {.op = "BatchNormalization", .element = &BatchNormalizationElement, .by_channel = true},
    {.op = "BitShift", .element = &BitShiftElement},
    {.op = "Cast", .element = &CastElement},
    {.op = "Clip", .element = &ClipElement},
    {.op = "Gelu", .element = &GeluElement},
    {.op = "Pow", .element = &PowElement},
    {.op = "Where", .element = &WhereElement},
});

}  // namespace
}  // namespace mendel::cuda::texts::select
