#include "graph/arithmetic.h"

#include <bit>

#include "base/element_stream.h"

namespace mendel {
namespace {

constexpr ScalarFunction kSelect = {"Where", nullptr};

Fp Oracle(std::array<uint64_t, 2> key, std::string_view name, std::span<const Fp> arguments,
          std::span<const double> parameters) {
  KeyedHash hash(key);
  hash.Add(name);
  hash.Add(static_cast<uint64_t>(parameters.size()));
  for (double parameter : parameters) hash.Add(std::bit_cast<uint64_t>(parameter));
  hash.Add(static_cast<uint64_t>(arguments.size()));
  for (Fp argument : arguments) hash.Add(argument.value);
  return {ElementOfHash(FieldScope::Current(), hash.Finish())};
}

}  // namespace

Fp Arithmetic<Fp>::NonFinite(double value) const {
  const uint64_t which = std::isnan(value) ? 0 : (value > 0 ? 1 : 2);
  KeyedHash hash(key_);
  hash.Add("nonfinite");
  hash.Add(which);
  return {ElementOfHash(FieldScope::Current(), hash.Finish())};
}

Fp Arithmetic<Fp>::Call(const ScalarFunction& f, std::span<const Fp> arguments,
                        std::span<const double> parameters) const {
  if (f.zero_at_zero && arguments.size() == 1 && arguments[0].value == 0) return {0};
  if (!f.symmetric) return Oracle(key_, f.name, arguments, parameters);
  std::vector<Fp> set(arguments.begin(), arguments.end());
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  if (set.size() > 1 && !std::isnan(f.neutral)) std::erase(set, NonFinite(f.neutral));
  if (set.size() == 1) return set[0];  // max(x, x) = x
  return Oracle(key_, f.name, set, parameters);
}

Fp Arithmetic<Fp>::Select(Fp condition, Fp yes, Fp no) const {
  if (yes == no) return yes;
  const std::array<Fp, 3> arguments = {condition, yes, no};
  return Oracle(key_, kSelect.name, arguments, {});
}

Bound Arithmetic<Bound>::Literal(double exact) const {
  if (!std::isfinite(exact)) return Bound::Symbol();
  if (exact == 0) return {};
  int exponent = 0;
  double mantissa = std::abs(std::frexp(exact, &exponent));  // in [1/2, 1)
  while (mantissa != std::floor(mantissa)) {
    mantissa *= 2;
    --exponent;
  }
  Bound bound;
  bound.log2_num = std::log2(mantissa) + std::max(0, exponent);
  bound.log2_den = std::max(0, -exponent);
  return bound;
}

Bound Arithmetic<Bound>::Call(const ScalarFunction& f, std::span<const Bound> arguments,
                              std::span<const double>) const {
  Bound result = Bound::Symbol();
  for (const Bound& argument : arguments) {
    CountOperands(1, argument);
    if (f.symmetric) result = Either(result, argument);  // max(x, x) = x
  }
  return result;
}

Bound Arithmetic<Bound>::Select(const Bound& condition, const Bound& yes, const Bound& no) const {
  const std::array<Bound, 3> arguments = {condition, yes, no};
  return Either(Either(Call(kSelect, arguments), yes), no);
}

}  // namespace mendel
