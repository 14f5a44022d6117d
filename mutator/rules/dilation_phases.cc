// Dilated convolutions of any stride and padding are computed without dilation, phase by phase.
//
//   before  Conv(x, w){dilation d, stride s}
//   after   interleave_r(Conv(x[(r*s - pad) mod d :: d], w){stride s/g, dilation 1})
//           r in [0, d/g),  g = gcd(s, d),  phases in the batch
//
// Exact: output (d/g)*m + r reads the positions r*s - pad + d*(m*s/g + t) only. Each phase reads a
// strided slice of the input. dilation_to_batch needs no slices, where stride and padding allow it.

#include <algorithm>
#include <numeric>

#include "base/status.h"
#include "mutator/conv_at.h"
#include "mutator/conv_chain.h"
#include "mutator/sample.h"
#include "mutator/space.h"

namespace mendel::rules::dilation_phases {
namespace {

constexpr int64_t kMaxPhases = 16;

int64_t Phases(const Window& window) {
  return window.kernel == 1 ? 1 : window.dilation / std::gcd(window.stride, window.dilation);
}

bool Accepts(const ConvShape& shape) {
  bool views_do = true, dilated = false;
  int64_t phases = 1;
  for (const Window& window : shape.windows) {
    if (window.kernel == 1 || window.dilation == 1) continue;
    dilated = true;
    views_do = views_do && window.stride == 1 && window.pad_begin % window.dilation == 0;
    phases *= Phases(window);
  }
  return dilated && !views_do && phases <= kMaxPhases && 2 + 2 * shape.windows.size() <= kMaxRank;
}

/// Positions first, first + step, .. (count of them) of dimension `dim`, zero outside.
ValueId Strided(Emitter& e, ValueId x, int64_t dim, int64_t first, int64_t step, int64_t count) {
  const int64_t extent = e.shape(x)[static_cast<size_t>(dim)];
  const int64_t last = first + (count - 1) * step;
  const int64_t before = std::max<int64_t>(0, -first);
  x = e.PadZero(x, dim, before, std::max<int64_t>(0, last + 1 - extent));
  return e.Slice(x, dim, first + before, last + before + 1, step);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const ConvLink& link = chain->front();
  const ConvShape shape = ShapeOf(subprogram, link.conv);
  const size_t rank = shape.windows.size();
  Emitter e;
  std::vector<ValueId> parts = {e.InputsOf(subprogram)[0]};
  Ints factors, strides, dilations, pads = subprogram.node(link.conv).attrs.IntList("pads");
  for (size_t d = 0; d < rank; ++d) {
    const Window& window = shape.windows[d];
    factors.push_back(Phases(window));
    const bool dense = window.kernel > 1 && window.dilation > 1;
    const int64_t common = std::gcd(window.stride, window.dilation);
    strides.push_back(dense ? window.stride / common : window.stride);
    dilations.push_back(dense ? 1 : window.dilation);
    if (!dense) continue;
    const int64_t outputs = (shape.out_spatial[d] + factors[d] - 1) / factors[d];
    const int64_t count = (outputs - 1) * strides[d] + window.kernel;
    std::vector<ValueId> cut;
    for (ValueId part : parts) {
      for (int64_t r = 0; r < factors[d]; ++r) {
        cut.push_back(Strided(e, part, static_cast<int64_t>(d + 2),
                              r * window.stride - window.pad_begin, window.dilation, count));
      }
    }
    parts = std::move(cut);
    pads[d] = pads[rank + d] = 0;
  }
  const ValueId y =
      EmitLink(e, subprogram, link, e.Concat(parts, 0),
               ChangedWindows(subprogram, link.conv,
                              {.strides = strides, .dilations = dilations, .pads = pads}));
  e.Output("out0", e.Cut(BatchToResidues(e, y, factors),
                         Box::Whole(subprogram.type(subprogram.outputs()[0].value).shape)));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const size_t rank = static_cast<size_t>(rng.Between(1, 2));
  Shape input = {rng.Between(1, 2), 2};
  for (size_t d = 0; d < rank; ++d) input.push_back(rng.Between(9, 14));
  return MakeRegionSample(rng, {.input = input,
                                .kernel = Shape(rank, rng.Between(2, 3)),
                                .dilation = rng.Between(2, 4),
                                .first_stride = rng.Between(1, 3),
                                .padded = rng.Flip(),
                                .residual = false,
                                .pool = false});
}

Rule Make() {
  Rule rule;
  rule.name = "dilation_phases";
  rule.family = "dilation and stride";
  rule.before = "Conv(x, w){dilation d, stride s}";
  rule.after =
      "interleaved Conv(every d-th position of x from r*s - pad, w){stride s/gcd(s, d)}, phases in "
      "the batch";
  rule.precondition = "at most 16 phases; the views of dilation_to_batch do not apply";
  rule.loses_when = "the strided slices cost more than the dense kernel gains";
  rule.match = [](const Graph& graph, int32_t node) {
    return MatchLink(graph, node, Accepts, {{}});
  };
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::dilation_phases
