// Dilated convolutions without dilation: rows (columns) taken modulo d go to the batch.
//
//   before  Conv(x, w){dilation d, stride 1}  [with bias and activation, a whole chain of equal dilation]
//   after   unview(Conv(view(x), w){dilation 1}),  view = ResiduesToBatch
//   exact: position t*d + r of the output reads positions of residue r + const only. When the extent is no multiple of d the
//   input is padded with zeros and the result cropped (single convolutions only: inside a chain the padding would not stay zero).
//   loses when the views cost more than the dense kernel gains (it gains where Winograd or better tiling becomes possible).
// Source: space-to-batch, PET section 4.

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
  if (std::all_of(factors.begin(), factors.end(), [](int64_t f) { return f == 1; })) return false;
  for (size_t d = 0; d < factors.size(); ++d) {
    const Window& window = shape.windows[d];
    if (factors[d] == 1) continue;
    if (window.stride != 1 || window.pad_begin % factors[d] != 0 || window.pad_end % factors[d] != 0) return false;
    if (window.input < factors[d] || shape.out_spatial[d] < 1) return false;
  }
  return shape.windows.size() <= 2;  // the views of 3-D inputs would exceed the language's rank
}

bool Divides(const ConvShape& shape) {
  const Ints factors = Factors(shape);
  for (size_t d = 0; d < factors.size(); ++d) {
    if (shape.windows[d].input % factors[d] != 0) return false;
  }
  return true;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  std::vector<Match> matches = MatchChains(graph, node, 64, [](const ConvShape& s) { return Accepts(s) && Divides(s); }, {{}});
  if (!matches.empty()) return matches;
  return MatchChains(graph, node, 1, Accepts, {{}});
}

/// Dense windows over one residue class.
Attributes Dense(const Graph& graph, int32_t conv, const ConvShape& shape, const Ints& factors) {
  const size_t rank = factors.size();
  Ints dilations, pads(2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    const Window& window = shape.windows[d];
    dilations.push_back(factors[d] == 1 ? window.dilation : 1);
    pads[d] = window.pad_begin / factors[d];
    pads[rank + d] = window.pad_end / factors[d];
  }
  return ChangedWindows(graph, conv, {.strides = {}, .dilations = dilations, .pads = pads});
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const Ints factors = Factors(ShapeOf(subprogram, chain->front().conv));
  for (const ConvLink& link : *chain) {
    if (Factors(ShapeOf(subprogram, link.conv)) != factors) return absl::FailedPreconditionError("dilations differ");
  }
  Emitter e;
  ValueId x = e.InputsOf(subprogram)[0];
  for (size_t d = 0; d < factors.size(); ++d) {
    const int64_t extent = e.shape(x)[d + 2];
    x = e.PadZero(x, static_cast<int64_t>(d + 2), 0, (factors[d] - extent % factors[d]) % factors[d]);
  }
  x = ResiduesToBatch(e, x, factors);
  for (const ConvLink& link : *chain) {
    x = EmitLink(e, subprogram, link, x, Dense(subprogram, link.conv, ShapeOf(subprogram, link.conv), factors));
  }
  x = BatchToResidues(e, x, factors);
  const Shape out = subprogram.type(subprogram.outputs()[0].value).shape;
  for (size_t d = 2; d < out.size(); ++d) x = e.Slice(x, static_cast<int64_t>(d), 0, out[d]);
  e.Output("out0", x);
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const int64_t d = rng.Between(2, 3);
  const int64_t h = rng.Between(2 * d, 4 * d);
  const int length = rng.Flip() ? 2 : 1;
  const int64_t extent = length == 2 ? 4 * d : h;
  return MakeConvSample({.input = {rng.Between(1, 2), 3, extent, extent},
                         .weight = {3, 3, 3, 3},
                         .strides = {1, 1},
                         .dilations = {d, d},
                         .pads = {d, d, d, d},
                         .bias = rng.Flip(),
                         .length = length});
}

Rule Make() {
  Rule rule;
  rule.name = "dilation_to_batch";
  rule.before = "Conv(x, w){dilation d}, chains with pointwise operators between";
  rule.after = "residues from batch(Conv(residues to batch(x), w){dilation 1})";
  rule.precondition = "stride 1 and padding a multiple of d in every dilated dimension; 1-D or 2-D";
  rule.loses_when = "the views cost more than the dense kernel gains";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel
