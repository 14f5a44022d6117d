// Dilated convolutions without dilation, the residues stacked in space instead of in the batch.
//
//   before  Conv(x, w){dilation d, stride 1, keeps space}  [chains]
//   after   unstack(Conv(stack(x), w){dilation 1}),  stack: position t*d + r goes to r*(H/d) + t
//   partial: wrong in reach rows on each side of every seam between residues, growing link by link.
//   loses when mending costs more than the dense kernel gains; one large image tiles better than d*d small ones.

#include <algorithm>

#include "mutator/conv_chain.h"
#include "mutator/space.h"

namespace mendel {
namespace {

Ints Factors(const ConvShape& shape) {
  Ints factors;
  for (const Window& window : shape.windows) factors.push_back(window.kernel > 1 ? window.dilation : 1);
  return factors;
}

bool Accepts(const ConvShape& shape) {
  const Ints factors = Factors(shape);
  if (!KeepsSpace(shape) || shape.windows.size() > 3) return false;
  if (std::all_of(factors.begin(), factors.end(), [](int64_t f) { return f == 1; })) return false;
  for (size_t d = 0; d < factors.size(); ++d) {
    const Window& window = shape.windows[d];
    const int64_t reach = (window.kernel - 1) * window.dilation;
    if (factors[d] > 1 && (window.input % factors[d] != 0 || window.pad_begin % factors[d] != 0 || window.input < 2 * reach))
      return false;
  }
  return true;
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const Ints factors = Factors(ShapeOf(subprogram, chain->front().conv));
  Emitter e;
  ValueId x = ResiduesStacked(e, e.InputsOf(subprogram)[0], factors);
  for (const ConvLink& link : *chain) {
    const ConvShape shape = ShapeOf(subprogram, link.conv);
    if (Factors(shape) != factors) return absl::FailedPreconditionError("dilations differ");
    const size_t rank = factors.size();
    Ints dilations, pads(2 * rank);
    for (size_t d = 0; d < rank; ++d) {
      dilations.push_back(factors[d] == 1 ? shape.windows[d].dilation : 1);
      pads[d] = shape.windows[d].pad_begin / factors[d];
      pads[rank + d] = shape.windows[d].pad_end / factors[d];
    }
    x = EmitLink(e, subprogram, link, x,
                 ChangedWindows(subprogram, link.conv, {.strides = {}, .dilations = dilations, .pads = pads}));
  }
  e.Output("out0", ResiduesUnstacked(e, x, factors));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const int64_t d = rng.Between(2, 3);
  return MakeConvSample({.input = {rng.Between(1, 2), 2, 6 * d, 6 * d},
                         .weight = {2, 2, 3, 3},
                         .strides = {1, 1},
                         .dilations = {d, d},
                         .pads = {d, d, d, d},
                         .bias = rng.Flip(),
                         .length = rng.Flip() ? 2 : 1});
}

Rule Make() {
  Rule rule;
  rule.name = "dilation_stack";
  rule.before = "Conv(x, w){dilation d}, chains with pointwise operators between";
  rule.after = "unstack(Conv(stack(x), w){dilation 1}), residues stacked in space";
  rule.precondition = "stride 1, space kept, extents divisible by d, padding a multiple of d";
  rule.loses_when = "mending the seams costs more than the dense kernel gains";
  rule.claim = Claim::kPartial;
  rule.match = [](const Graph& graph, int32_t node) { return MatchChains(graph, node, 2, Accepts, {{}}); };
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel
