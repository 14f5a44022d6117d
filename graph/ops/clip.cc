// Clip(x) = min(max(x, min), max), with the bounds as attributes; infinite bounds do not limit,
// also for integers. (onnx/ turns bounds computed at run time into Min and Max.)

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/elementwise.h"

namespace mendel::ops::clip {
namespace {

int64_t ClipInteger(int64_t x, double low, double high) {
  // A bound outside 64 bits limits nothing or everything; one inside is converted rounding into the
  // interval.
  if (low >= 0x1p63) x = std::numeric_limits<int64_t>::max();
  if (low > -0x1p63 && low < 0x1p63) x = std::max(x, static_cast<int64_t>(std::ceil(low)));
  if (high < -0x1p63) x = std::numeric_limits<int64_t>::min();
  if (high >= -0x1p63 && high < 0x1p63) x = std::min(x, static_cast<int64_t>(std::floor(high)));
  return x;
}

/// Zero at zero only when the interval holds it, which depends on the attributes: hence two
/// functions, one oracle.
constexpr ScalarFunction ClipFunction(bool zero_at_zero) {
  return {.name = "Clip",
          .real =
              [](std::span<const double> x, std::span<const double> p) {
                const double above = x[0] < p[0] ? p[0] : x[0];
                return above > p[1] ? p[1] : above;
              },
          .integer = [](std::span<const int64_t> x,
                        std::span<const double> p) { return ClipInteger(x[0], p[0], p[1]); },
          .zero_at_zero = zero_at_zero};
}
constexpr ScalarFunction kClipAroundZero = ClipFunction(true);
constexpr ScalarFunction kClip = ClipFunction(false);

struct ClipMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const double low = node.attrs.Float("min");
    const double high = node.attrs.Float("max");
    FillCalls(in, low <= 0 && high >= 0 ? kClipAroundZero : kClip, {low, high}, out);
  }
};

OpSample Sample(Rng& rng) {
  OpSample sample = SampleUnaryNumeric(rng);
  if (rng.Flip(0.8)) sample.attrs.Set("min", static_cast<double>(rng.Between(-4, 2)) / 2);
  if (rng.Flip(0.8)) sample.attrs.Set("max", static_cast<double>(rng.Between(-1, 6)) / 2);
  return sample;
}

OpDefinition Make() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  OpDefinition op = ElementwiseOp("Clip", 1);
  op.attributes = {{"min", -kInfinity}, {"max", kInfinity}};
  op.infer = &InferSameNumeric;
  op.meaning = MeaningOf<ClipMeaning>();
  op.bound = &BoundOfCall;
  op.sample = &Sample;
  op.sign = [](const NodeView& node, std::span<const Sign> inputs, bool) {
    return std::min(std::max(inputs[0], SignOf(node.attrs.Float("min"))),
                    SignOf(node.attrs.Float("max")));
  };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::clip
