// Mod(a, b) with NumPy broadcasting. fmod = 0 (integers only): the remainder has the sign of b, as
// in Python; fmod = 1: that of a, as C's fmod. A remainder by the integer 0 is 0.

#include <cmath>

#include "base/status.h"
#include "graph/elementwise.h"

namespace mendel::ops::mod {
namespace {

int64_t IntegerMod(int64_t a, int64_t b, bool fmod) {
  if (b == 0 || b == -1) return 0;  // INT64_MIN % -1 overflows
  const int64_t rest = a % b;
  return !fmod && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

constexpr ScalarFunction kMod = {
    .name = "Mod",
    .real = [](std::span<const double> x,
               std::span<const double>) { return std::fmod(x[0], x[1]); },
    .integer = [](std::span<const int64_t> x,
                  std::span<const double> p) { return IntegerMod(x[0], x[1], p[0] != 0); }};

struct ModMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView& node, int, Index i) {
    const double fmod = node.attrs.Int("fmod") != 0 ? 1 : 0;
    return in.Call(kMod, {in.Broadcast(0, i), in.Broadcast(1, i)},
                   std::span<const double>(&fmod, 1));
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  if (IsFloat(inputs[0].dtype) && attrs.Int("fmod") == 0)
    return InvalidInput("floats need fmod = 1");
  return InferBroadcastNumeric(inputs, attrs);
}

OpSample Sample(Rng& rng) {
  OpSample sample = SampleBinaryNumeric(rng);
  const bool integral = IsIntegral(sample.inputs[1].dtype);
  sample.attrs.Set("fmod", integral ? rng.Between(0, 1) : 1);
  sample.ranges.push_back({1, integral ? std::pair(1.0, 6.0) : std::pair(0.5, 2.0)});
  return sample;
}

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("Mod", 2);
  op.attributes = {{"fmod", int64_t{0}}};
  op.infer = &Infer;
  op.meaning = MeaningOf<ModMeaning>();
  op.sample = &Sample;
  op.domain = {{.input = 1, .demand = Demand::kNonZero}};
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::mod
