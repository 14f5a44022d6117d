#include "runtime/numerics.h"

#include "base/check.h"
#include "base/status.h"

namespace mendel {
namespace {

struct Class {
  Numerics numerics;
  std::string_view name;
  std::optional<Numerics> stricter;
  double rounding;
};

constexpr Class kClasses[] = {
    {Numerics::kStrict, "strict", std::nullopt, 0},
    {Numerics::kDefault, "default", Numerics::kStrict, 0},
    {Numerics::kInt8, "int8", Numerics::kDefault, 0},
    {Numerics::kHigh, "high", Numerics::kDefault, 0x1p-16},
    {Numerics::kTf32, "tf32", Numerics::kHigh, 0x1p-11},
    {Numerics::kF16, "f16", Numerics::kTf32, 0x1p-11},
    {Numerics::kBf16, "bf16", Numerics::kTf32, 0x1p-8},
};

const Class& Find(Numerics numerics) {
  for (const Class& known : kClasses) {
    if (known.numerics == numerics) return known;
  }
  MENDEL_CHECK(false);
}

}  // namespace

std::string_view NumericsName(Numerics numerics) { return Find(numerics).name; }

std::string NumericsNames() {
  std::string names;
  for (const Numerics numerics : kAllNumerics)
    names += Cat(names.empty() ? "" : ", ", NumericsName(numerics));
  return names;
}

absl::StatusOr<Numerics> ParseNumerics(std::string_view name) {
  for (const Numerics numerics : kAllNumerics) {
    if (NumericsName(numerics) == name) return numerics;
  }
  return InvalidInput("unknown numerics class '", name, "' (", NumericsNames(), ")");
}

std::optional<Numerics> Stricter(Numerics numerics) { return Find(numerics).stricter; }

bool Allows(Numerics numerics, Numerics technique) {
  for (std::optional<Numerics> allowed = numerics; allowed.has_value();
       allowed = Stricter(*allowed)) {
    if (*allowed == technique) return true;
  }
  return false;
}

double OperandRounding(Numerics numerics) { return Find(numerics).rounding; }

}  // namespace mendel
