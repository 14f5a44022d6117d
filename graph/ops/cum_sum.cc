// CumSum(x): running sums along `axis`; `exclusive` leaves the element itself out, `reverse` sums
// from the end.

#include <algorithm>

#include "base/status.h"
#include "graph/elementwise.h"
#include "graph/grid.h"
#include "graph/lines.h"
#include "graph/whole_access.h"

namespace mendel::ops::cum_sum {
namespace {

struct CumSumMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const bool exclusive = node.attrs.Int("exclusive") != 0;
    const bool reverse = node.attrs.Int("reverse") != 0;
    FillLines(in, node.attrs.Int("axis"), out, [&](std::span<S> x) {
      if (reverse) std::reverse(x.begin(), x.end());
      S sum{};
      for (S& v : x) {
        const S before = sum;
        sum = Plus(sum, v);
        v = exclusive ? before : sum;
      }
      if (reverse) std::reverse(x.begin(), x.end());
    });
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  MENDEL_RETURN_IF_ERROR(CheckLineAxis(inputs, attrs));
  for (const char* flag : {"exclusive", "reverse"}) {
    if (attrs.Int(flag) != 0 && attrs.Int(flag) != 1)
      return InvalidInput(flag, " must be 0 or 1, not ", attrs.Int(flag));
  }
  return InferSameNumeric(inputs, attrs);
}

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int, const Arithmetic<Bound>&) {
  return SumOf(LineLength(node), inputs[0]);
}

/// All positions up to the last that is wanted (from the first, when sums run from the end).
std::optional<GridRestriction> RestrictGrid(const GridRequest& request) {
  const size_t axis = static_cast<size_t>(request.node.attrs.Int("axis"));
  const Positions& wanted = request.wanted[axis];
  GridRestriction result = WholeRestriction(request.node, 0);
  result.computed = request.wanted;
  const bool reverse = request.node.attrs.Int("reverse") != 0;
  const int64_t extent = request.node.inputs[0].shape[axis];
  result.computed[axis] = reverse ? Positions::Range(wanted[0], extent - wanted[0])
                                  : Positions::Whole(wanted[wanted.size() - 1] + 1);
  result.inputs[0] = result.computed;
  return result;
}

OpSample Sample(Rng& rng) {
  OpSample sample = SampleLines(rng);
  if (rng.Flip(0.3)) sample.inputs[0].dtype = rng.Flip() ? DType::kI32 : DType::kI64;
  sample.attrs.Set("exclusive", rng.Between(0, 1));
  sample.attrs.Set("reverse", rng.Between(0, 1));
  return sample;
}

OpDefinition Make() {
  OpDefinition op = LineOp("CumSum");
  op.attributes.push_back({"exclusive", int64_t{0}});
  op.attributes.push_back({"reverse", int64_t{0}});
  op.infer = &Infer;
  op.meaning = MeaningOf<CumSumMeaning>();
  op.linear_inputs = &LinearInFirst;
  op.access = [](const NodeView& node) {
    const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
    AccessPattern pattern = WholeAlong(node, axis, axis + 1);
    pattern.combine = AccessPattern::Combine::kSum;
    return std::optional(pattern);
  };
  op.bound = &BoundOf;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "CumSum", .restrict = &RestrictGrid});

}  // namespace
}  // namespace mendel::ops::cum_sum
