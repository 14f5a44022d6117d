// A large kernel becomes a sum of small ones.
//
//   before  Conv(x, w[O, C, K_h, K_w, ..])        5x5, 7x7, 1x7, 7x1, 3x3x3, ..
//   after   sum over parts of Conv(x shifted, w[.., part])
//
// Exact: a convolution is the sum over its taps. A part is at most `part` taps wide in every
// dimension: 5x5 = 3x3 + 3x2 + 2x3 + 2x2. With part 1 along one dimension the parts are rows.
//
// Source: EinNet (summation splitting), TASO.

#include <algorithm>

#include "base/status.h"
#include "mutator/conv_at.h"
#include "mutator/conv_chain.h"
#include "mutator/sample.h"

namespace mendel::rules::split_kernel {
namespace {

constexpr size_t kMaxParts = 9;

size_t PartsOf(const ConvShape& shape, const Ints& widths) {
  size_t parts = 1;
  for (size_t d = 0; d < widths.size(); ++d) {
    parts *= static_cast<size_t>((shape.windows[d].kernel + widths[d] - 1) / widths[d]);
  }
  return parts;
}

/// Part widths worth trying: 3 everywhere (what fast kernels take), and single rows along the first
/// dimension.
std::vector<Ints> Widths(const ConvShape& shape) {
  const size_t rank = shape.windows.size();
  std::vector<Ints> choices;
  Ints threes(rank, 3), rows;
  for (const Window& window : shape.windows) rows.push_back(window.kernel);
  rows[0] = 1;
  for (const Ints& widths : {threes, rows}) {
    const size_t parts = PartsOf(shape, widths);
    const bool whole_rows = widths == rows && (rank == 1 || shape.windows[0].kernel < 5);
    if (parts > 1 && parts <= kMaxParts && !whole_rows) choices.push_back(widths);
  }
  return choices;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const std::vector<ConvLink> chain = ConvChainEndingAt(graph, node);
  if (chain.empty()) return {};
  std::vector<std::map<std::string, int64_t>> choices;
  for (const Ints& widths : Widths(ShapeOf(graph, chain.back().conv))) {
    std::map<std::string, int64_t> choice;
    for (size_t d = 0; d < widths.size(); ++d) choice[Cat("width", d)] = widths[d];
    choices.push_back(choice);
  }
  return MatchLink(
      graph, node, [](const ConvShape&) { return true; }, choices);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match, const Predictor&) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const ConvLink& link = chain->front();
  const ConvShape shape = ShapeOf(subprogram, link.conv);
  const Node& conv = subprogram.node(link.conv);
  const size_t rank = shape.windows.size();
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const ValueId w = e.CopyConstantExpression(subprogram, conv.inputs[1]);
  std::optional<ValueId> bias;
  if (conv.inputs.size() > 2) bias = e.CopyConstantExpression(subprogram, conv.inputs[2]);
  Ints widths, counts;
  for (size_t d = 0; d < rank; ++d) {
    widths.push_back(match.choices.at(Cat("width", d)));
    counts.push_back((shape.windows[d].kernel + widths[d] - 1) / widths[d]);
  }
  std::optional<ValueId> sum;
  for (int64_t k = 0; k < NumElements(counts); ++k) {
    ValueId part = w;
    std::vector<Reads> reads(rank);
    int64_t rest = k;
    for (size_t d = rank; d-- > 0;) {
      const Window& window = shape.windows[d];
      const int64_t begin = rest % counts[d] * widths[d];
      rest /= counts[d];
      part = TapsOf(e, part, d, begin, std::min(begin + widths[d], window.kernel));
      reads[d] = ReadsOf(window, shape.out_spatial[d]);
      reads[d].first += begin * window.dilation;
    }
    const ValueId y =
        ConvAt(e, x, part, k == 0 ? bias : std::nullopt, reads, shape.group, conv.name);
    sum = sum.has_value() ? e.Add(*sum, y) : y;
  }
  e.Output("out0", EmitTail(e, subprogram, link, *sum));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const size_t rank = static_cast<size_t>(rng.Between(1, 3));
  Shape input = {rng.Between(1, 2), 2}, kernel;
  for (size_t d = 0; d < rank; ++d) {
    input.push_back(rng.Between(7, rank == 3 ? 7 : 12));
    kernel.push_back(d == 0 ? rng.Between(4, rank == 3 ? 5 : 7)
                            : rng.Between(1, rank == 3 ? 2 : 5));
  }
  return MakeRegionSample(rng, {.input = input,
                                .kernel = kernel,
                                .dilation = rank == 1 ? rng.Between(1, 2) : 1,
                                .first_stride = rng.Between(1, 2),
                                .residual = false,
                                .pool = false});
}

Rule Make() {
  Rule rule;
  rule.name = "split_kernel";
  rule.family = "kernel shape";
  rule.before = "Conv(x, w[O, C, K_h, K_w])";
  rule.after = "sum of Conv(shifted x, part of w), parts at most 3 wide, or single rows";
  rule.precondition =
      "some extent of the kernel above 3; at most 9 parts; any stride, dilation and groups";
  rule.loses_when = "the library runs the large kernel as well: the sums are extra traffic";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::split_kernel
