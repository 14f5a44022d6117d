// LpPool(x[N, C, D...]): (sum over the window of |x|^p)^(1/p), p a positive integer. Padding counts
// as zero.

#include "base/status.h"
#include "graph/elementwise.h"
#include "graph/functions.h"
#include "graph/pooling.h"
#include "graph/window_grid.h"

namespace mendel::ops::lp_pool {
namespace {

struct LpPoolMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const int64_t p = node.attrs.Int("p");
    FillPool(in, PoolGeometry(node), out, [&](std::span<const S> x, size_t) {
      S sum{};
      for (const S& v : x) {
        const S base = p % 2 == 0 ? v : in.Call(functions::kAbs, {v});
        S power = base;
        for (int64_t k = 1; k < p; ++k) power = Times(power, base);
        sum = Plus(sum, power);
      }
      return p == 1 ? sum : Root(in, sum, p);
    });
  }

  template <class S>
  static S Root(const Reader<S>& in, const S& sum, int64_t p) {
    if constexpr (std::is_same_v<S, int64_t>) {
      return sum;  // never: inference takes floats only
    } else {
      return p == 2 ? in.Call(functions::kSqrt, {sum})
                    : in.Call(functions::kPow, {sum, in.Literal(1.0 / static_cast<double>(p))});
    }
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const int64_t p = attrs.Int("p");
  if (p < 1 || p > 64) return InvalidInput("p must be between 1 and 64, not ", p);
  return InferPoolFloat(inputs, attrs);
}

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  const double p = static_cast<double>(node.attrs.Int("p"));
  const double taps = PoolTaps(node);
  if (node.attrs.Int("p") % 2 != 0) arithmetic.CountOperands(taps, inputs[0]);
  const Bound base = Either(inputs[0], Bound::Symbol());
  const Bound sum =
      SumOf(taps, {p * base.num_degree, p * base.den_degree, p * base.log2_num, p * base.log2_den});
  if (p == 1) return sum;
  arithmetic.CountOperands(1, sum);
  if (p > 2) arithmetic.CountOperands(1, arithmetic.Literal(1 / p));
  return Bound::Symbol();
}

OpSample Sample(Rng& rng) {
  OpSample sample = SamplePool(rng);
  sample.attrs.Set("p", rng.Between(1, 4));
  return sample;
}

OpDefinition Make() {
  OpDefinition op = PoolOp("LpPool");
  op.attributes.push_back({"p", int64_t{2}});
  op.infer = &Infer;
  op.meaning = MeaningOf<LpPoolMeaning>();
  op.bound = &BoundOf;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "LpPool", .restrict = [](const GridRequest& request) {
                                  return RestrictPoolGrid(request, false);
                                }});

}  // namespace
}  // namespace mendel::ops::lp_pool
