// IsInf(x): whether x is infinite, of the signs requested.

#include <limits>

#include "graph/elementwise.h"

namespace mendel::ops::is_inf {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr ScalarFunction kIsInf = {.name = "IsInf",
                                   .real =
                                       [](std::span<const double> x, std::span<const double> p) {
                                         const bool found = (x[0] == -kInfinity && p[0] != 0) ||
                                                            (x[0] == kInfinity && p[1] != 0);
                                         return found ? 1.0 : 0.0;
                                       },
                                   .zero_at_zero = true};

Parameters ParametersOf(const NodeView& node) {
  return {node.attrs.Int("detect_negative") != 0 ? 1.0 : 0.0,
          node.attrs.Int("detect_positive") != 0 ? 1.0 : 0.0};
}

OpSample Sample(Rng& rng) {
  OpSample sample = SampleUnaryFloat(rng);
  sample.attrs.Set("detect_negative", rng.Between(0, 1));
  sample.attrs.Set("detect_positive", rng.Between(0, 1));
  return sample;
}

OpDefinition Make() {
  OpDefinition op = UnaryOp<kIsInf, &ParametersOf>();
  op.attributes = {{"detect_negative", int64_t{1}}, {"detect_positive", int64_t{1}}};
  op.infer = &InferSameFloatToBool;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::is_inf
