// Parallel convolutions of different kernels on one input become one of the union of their kernels.
//
//   before  Conv(x, w1[O1, C, K1..], b1), Conv(x, w2[O2, C, K2..], b2), ..
//   after   Split(Conv(x, [embed(w1); embed(w2); ..], [b1; b2; ..])) in the union of their windows
//
// Exact where all values are finite.
//
// Source: TASO (enlarge and merge).

#include <algorithm>

#include "mutator/conv_at.h"
#include "mutator/conv_chain.h"
#include "mutator/matches_by_last_node.h"
#include "mutator/parallel.h"
#include "mutator/sample.h"

namespace mendel::rules::merge_unequal_convs {
namespace {

constexpr double kMaxGrowth = 2.5;

bool TakesPart(const Graph& graph, int32_t id) {
  const Node& conv = graph.node(id);
  if (conv.op->name != "Conv" || conv.attrs.Int("group") != 1 || IsWeight(graph, conv.inputs[0]))
    return false;
  const Ints& dilations = conv.attrs.IntList("dilations");
  return std::all_of(dilations.begin(), dilations.end(), [](int64_t d) { return d == 1; }) &&
         std::all_of(conv.inputs.begin() + 1, conv.inputs.end(),
                     [&](ValueId v) { return IsWeight(graph, v); });
}

bool Alike(const Graph& graph, int32_t first, int32_t second) {
  const Node &one = graph.node(first), &other = graph.node(second);
  const Shape &a = one.outputs[0].shape, &b = other.outputs[0].shape;
  return one.attrs.IntList("strides") == other.attrs.IntList("strides") &&
         one.inputs.size() == other.inputs.size() &&
         std::equal(a.begin() + 2, a.end(), b.begin() + 2);
}

TapHull UnionOf(const Graph& graph, const std::vector<int32_t>& convs) {
  std::vector<std::vector<Window>> windows;
  for (int32_t id : convs) windows.push_back(ShapeOf(graph, id).windows);
  return HullOf(windows);
}

MatchesByLastNode AllMatches(const Graph& graph) {
  MatchesByLastNode matches;
  for (const auto& group :
       SiblingGroups(graph, {.operand = 0, .takes_part = &TakesPart, .alike = &Alike})) {
    const Node& last = graph.node(group.back());
    double before = 0, channels = 0;
    bool unequal = false;
    for (int32_t id : group) {
      const Shape& w = graph.type(graph.node(id).inputs[1]).shape;
      before += static_cast<double>(NumElements(w)) / static_cast<double>(w[1]);
      channels += static_cast<double>(w[0]);
      unequal = unequal ||
                !(graph.node(id).attrs == last.attrs &&
                  std::equal(w.begin() + 2, w.end(), graph.type(last.inputs[1]).shape.begin() + 2));
    }
    const double taps = static_cast<double>(NumElements(UnionOf(graph, group).Extents()));
    if (unequal && channels * taps <= kMaxGrowth * before)
      matches[group.back()].push_back({group, {}});
  }
  return matches;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return MatchesEndingAt(graph, node, &AllMatches);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  std::vector<int32_t> convs;
  for (const GraphOutput& output : subprogram.outputs()) convs.push_back(output.value.node);
  const TapHull all = UnionOf(subprogram, convs);
  std::vector<ValueId> weights, biases;
  Ints sizes;
  for (int32_t id : convs) {
    const Node& conv = subprogram.node(id);
    weights.push_back(EmbedTaps(e, e.CopyConstantExpression(subprogram, conv.inputs[1]),
                                ShapeOf(subprogram, id).windows, all));
    sizes.push_back(e.shape(weights.back())[0]);
    if (conv.inputs.size() > 2)
      biases.push_back(e.CopyConstantExpression(subprogram, conv.inputs[2]));
  }
  const ConvShape shape = ShapeOf(subprogram, convs[0]);
  std::vector<Reads> reads;
  for (size_t d = 0; d < shape.windows.size(); ++d) {
    reads.push_back({all.first[d], shape.out_spatial[d], shape.windows[d].stride, 1});
  }
  std::optional<ValueId> bias;
  if (!biases.empty()) bias = e.Concat(biases, 0);
  const ValueId y = ConvAt(e, x, e.Concat(weights, 0), bias, reads);
  const std::vector<ValueId> parts =
      e.Ops("Split", {y}, sizes.size(), {{"axis", int64_t{1}}, {"sizes", sizes}});
  for (size_t k = 0; k < parts.size(); ++k) e.Output(subprogram.outputs()[k].name, parts[k]);
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const ValueId x = e.Input("x", {DType::kF32, {rng.Between(1, 2), 2, 7, 8}});
  const int64_t stride = rng.Between(1, 2);
  const bool biased = rng.Flip();
  const Shape kernels[] = {{3, 3}, {1, 3}, {3, 1}, {3, 3}, {1, 1}};
  int64_t count = 0;
  for (int64_t k : {int64_t{0}, rng.Between(1, 4), rng.Between(1, 3)}) {
    const Shape& kernel = kernels[k];
    const int64_t channels = k == 0 ? 6 : rng.Between(1, 2);
    const std::string number = std::to_string(count++);
    std::vector<ValueId> inputs = {
        x, SampleWeight(e, rng, {channels, 2, kernel[0], kernel[1]}, "w" + number)};
    if (biased) inputs.push_back(SampleWeight(e, rng, {channels}, "b" + number));
    const Ints pads = {kernel[0] / 2, kernel[1] / 2, kernel[0] / 2, kernel[1] / 2};
    e.Output("y" + number,
             e.Op("Conv", inputs,
                  {{"strides", Ints{stride, stride}}, {"dilations", Ints{1, 1}}, {"pads", pads}}));
  }
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "merge_unequal_convs";
  rule.family = "kernel shape";
  rule.before = "Conv(x, w1), Conv(x, w2), .. of different kernels";
  rule.after = "Split(Conv(x, [w1; w2; ..] embedded in one window))";
  rule.precondition =
      "one input, equal strides and output extents, dilation 1, group 1, at most 2.5 times the "
      "taps";
  rule.loses_when = "the zeros added cost more than one larger convolution gains";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::merge_unequal_convs
