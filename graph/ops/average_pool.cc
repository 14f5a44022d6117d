// AveragePool(x[N, C, D...]): the mean of each window. count_include_pad = 0 divides by the number
// of elements inside the input (0 where there are none); 1 counts explicit padding too, but not
// what ceil_mode adds beyond it.

#include "base/status.h"
#include "graph/elementwise.h"
#include "graph/pooling.h"
#include "graph/window_grid.h"

namespace mendel::ops::average_pool {
namespace {

bool CountsPadding(const NodeView& node) { return node.attrs.Int("count_include_pad") != 0; }

int64_t DivisorAt(const NodeView& node, const PoolGeometry& geometry, size_t o) {
  return CountsPadding(node) ? geometry.padded_size[o] : geometry.start[o + 1] - geometry.start[o];
}

struct AveragePoolMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const PoolGeometry geometry(node);
    std::vector<Divisor<S>> divide;
    for (size_t o = 0; o + 1 < geometry.start.size(); ++o) {
      divide.emplace_back(in, std::max<int64_t>(1, DivisorAt(node, geometry, o)));
    }
    FillPool(in, geometry, out, [&](std::span<const S> x, size_t o) {
      S sum{};
      for (const S& v : x) sum = Plus(sum, v);
      return divide[o](sum);
    });
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const int64_t count = attrs.Int("count_include_pad");
  if (count != 0 && count != 1)
    return InvalidInput("count_include_pad must be 0 or 1, not ", count);
  return InferPoolFloat(inputs, attrs);
}

/// Divisors differ from element to element, and a smaller one never has a larger bound.
Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  return SumOf(PoolTaps(node), inputs[0]) / arithmetic.Literal(PoolTaps(node));
}

std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  return RestrictPool(node, out, CountsPadding(node));
}

/// A break wherever the divisor changes: the number of taps that count is a product over the
/// dimensions, so that each dimension breaks where its own factor changes.
std::optional<AccessPattern> Access(const NodeView& node) {
  AccessPattern pattern = PoolAccess(node, AccessPattern::Combine::kSum);
  const std::vector<Window> windows = PoolWindows(node);
  for (size_t d = 0; d < windows.size(); ++d) {
    const Window& window = windows[d];
    const int64_t low = CountsPadding(node) ? -window.pad_begin : 0;
    const int64_t high = window.input + (CountsPadding(node) ? window.pad_end : 0);
    int64_t previous = -1;
    for (int64_t o = 0; o < node.outputs[0].shape[d + 2]; ++o) {
      int64_t taps = 0;
      for (int64_t k = 0; k < window.kernel; ++k)
        taps += window.Position(o, k) >= low && window.Position(o, k) < high ? 1 : 0;
      if (o > 0 && taps != previous) pattern.breaks[d + 2].push_back(o);
      previous = taps;
    }
  }
  return pattern;
}

OpSample Sample(Rng& rng) {
  OpSample sample = SamplePool(rng);
  sample.attrs.Set("count_include_pad", rng.Between(0, 1));
  return sample;
}

OpDefinition Make() {
  OpDefinition op = PoolOp("AveragePool");
  op.attributes.push_back({"count_include_pad", int64_t{0}});
  op.infer = &Infer;
  op.meaning = MeaningOf<AveragePoolMeaning>();
  op.linear_inputs = &LinearInFirst;
  op.bound = &BoundOf;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "AveragePool", .restrict = [](const GridRequest& request) {
                                  return RestrictPoolGrid(request, CountsPadding(request.node));
                                }});

}  // namespace
}  // namespace mendel::ops::average_pool
