// Two padded convolutions with nothing between them become one of the larger kernel.
//
//   before  Conv(Conv(x, a, b){pads p}, c, d){pads q}
//   after   Conv(x, c*a, ..){pads p + q*stride}
//
// Partial: wrong where a window of the second convolution reads its padding. There the mutant reads
// what the first convolution computes beyond its image, instead of zeros. The rule wins where many
// channels lie between two images of few.
//
// Source: PET (OSDI 2021); the algebra of sums of products merges the weights
// (mutator/index/products.h).

#include <algorithm>

#include "base/status.h"
#include "graph/rewrite.h"
#include "mutator/conv_chain.h"
#include "mutator/index/products.h"
#include "mutator/parallel.h"
#include "mutator/sample.h"

namespace mendel::rules::merge_padded_convs {
namespace {

constexpr int kMostNodes = 64;       // of a site
constexpr double kLessWork = 0.9;    // of the multiplications
constexpr int64_t kMostKernel = 25;  // positions of the larger kernel along an axis

bool HasWeights(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  return node.op->name == "Conv" && node.attrs.Int("group") == 1 &&
         IsWeight(graph, node.inputs[1]) && !HasRunTimeBias(graph, node);
}

/// Extents of the kernel of both, and its step.
struct Merged {
  Shape kernel;
  double multiplications = 0;  ///< a position of the result
};

Merged MergedWindows(const ConvShape& first, const ConvShape& second) {
  Merged merged;
  double taps = 1;
  for (size_t d = 0; d < first.windows.size(); ++d) {
    const Window &a = first.windows[d], &b = second.windows[d];
    merged.kernel.push_back((b.kernel - 1) * b.dilation * a.stride + (a.kernel - 1) * a.dilation +
                            1);
    taps *= static_cast<double>(merged.kernel.back());
  }
  merged.multiplications = taps * static_cast<double>(first.channels * second.out_channels);
  return merged;
}

double Multiplications(const ConvShape& shape) {
  double all = static_cast<double>(shape.channels * shape.out_channels);
  for (const Window& window : shape.windows) all *= static_cast<double>(window.kernel);
  for (const int64_t extent : shape.out_spatial) all *= static_cast<double>(extent);
  return all;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  if (!HasWeights(graph, node)) return {};
  const int32_t before = graph.node(node).inputs[0].node;
  if (!HasWeights(graph, before) || graph.OnlyUser(before) < 0) return {};
  const ConvShape first = ShapeOf(graph, before), second = ShapeOf(graph, node);
  const bool padded =
      std::any_of(second.windows.begin(), second.windows.end(),
                  [](const Window& window) { return window.pad_begin + window.pad_end > 0; });
  if (!padded) return {};  // exact: sums_of_products
  const Merged merged = MergedWindows(first, second);
  if (*std::max_element(merged.kernel.begin(), merged.kernel.end()) > kMostKernel) return {};
  double after = merged.multiplications;
  for (const int64_t extent : second.out_spatial) after *= static_cast<double>(extent);
  if (after > kLessWork * (Multiplications(first) + Multiplications(second))) return {};
  return {{{before, node}, {}}};
}

/// Both convolutions, the padding of the second moved in front of the first.
absl::StatusOr<Graph> Relaxed(const Graph& subprogram) {
  const Node& second = subprogram.node(subprogram.outputs()[0].value.node);
  const int32_t before = second.inputs[0].node;
  const Node& first = subprogram.node(before);
  const std::vector<Window> windows = ShapeOf(subprogram, before).windows;
  const Ints &inner = first.attrs.IntList("pads"), &outer = second.attrs.IntList("pads");
  Ints pads;
  for (size_t k = 0; k < inner.size(); ++k)
    pads.push_back(inner[k] + outer[k] * windows[k % windows.size()].stride);
  const auto emit = [&](Emitter& e, int32_t id, ValueId x, const Ints& padding) {
    std::vector<ValueId> inputs = {x};
    const Node& conv = subprogram.node(id);
    WindowChange change;
    change.pads = padding;
    for (size_t k = 1; k < conv.inputs.size(); ++k)
      inputs.push_back(e.CopyConstantExpression(subprogram, conv.inputs[k]));
    return e.Op("Conv", inputs, ChangedWindows(subprogram, id, change), conv.name);
  };
  Emitter e;
  const ValueId x = emit(e, before, e.InputsOf(subprogram)[0], pads);
  e.Output(subprogram.outputs()[0].name,
           emit(e, subprogram.outputs()[0].value.node, x, Ints(outer.size(), 0)));
  return e.Finish();
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor& predictor) {
  MENDEL_ASSIGN_OR_RETURN(const Graph relaxed, Relaxed(subprogram));
  if (relaxed.node(relaxed.outputs()[0].value.node).outputs[0] !=
      subprogram.node(subprogram.outputs()[0].value.node).outputs[0])
    return absl::FailedPreconditionError("the first convolution's last window does not fit");
  const auto site =
      TranslateSite(relaxed, relaxed.outputs()[0].value.node, kMostNodes, Expansion::kOneTerm);
  if (!site.has_value()) return absl::FailedPreconditionError("no sum of products");
  for (const ProductProposal& proposal : DeriveProducts(relaxed, *site, predictor, {})) {
    auto graph = RealizeProposal(relaxed, *site, proposal);
    if (graph.ok()) return graph;
  }
  return absl::FailedPreconditionError("the merged kernel is not predicted to be faster");
}

/// Positions along one axis whose windows read one outside of the first convolution's result at
/// which this sees a part of its input (or adds a bias).
std::vector<int64_t> WrongAlong(const Window& first, const Window& second, bool biased) {
  std::vector<int64_t> wrong;
  for (int64_t o = 0; o < second.OutputExtent(); ++o) {
    bool sees = false;
    for (int64_t tap = 0; tap < second.kernel; ++tap) {
      const int64_t middle = second.Position(o, tap);
      if (middle >= 0 && middle < second.input) continue;
      for (int64_t k = 0; k < first.kernel; ++k) {
        const int64_t at = first.Position(middle, k);
        sees = sees || biased || (at >= 0 && at < first.input);
      }
    }
    if (sees) wrong.push_back(o);
  }
  return wrong;
}

absl::StatusOr<std::vector<std::vector<Box>>> Wrong(const Graph& subprogram, const Match&) {
  const int32_t id = subprogram.outputs()[0].value.node;
  const int32_t before = subprogram.node(id).inputs[0].node;
  const ConvShape first = ShapeOf(subprogram, before), second = ShapeOf(subprogram, id);
  const bool biased = subprogram.node(before).inputs.size() > 2;
  const Box whole = Box::Whole(subprogram.node(id).outputs[0].shape);
  std::vector<Box> boxes;
  for (size_t d = 0; d < second.windows.size(); ++d) {
    const std::vector<int64_t> wrong = WrongAlong(first.windows[d], second.windows[d], biased);
    for (size_t k = 0; k < wrong.size(); ++k) {
      if (k > 0 && wrong[k] == wrong[k - 1] + 1) {
        ++boxes.back().end[d + 2];
        continue;
      }
      boxes.push_back(whole);
      boxes.back().begin[d + 2] = wrong[k];
      boxes.back().end[d + 2] = wrong[k] + 1;
    }
  }
  return std::vector<std::vector<Box>>{boxes};
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t channels = rng.Between(1, 2), middle = 48, size = rng.Between(9, 12);
  const int64_t kernel = rng.Flip() ? 3 : 1;
  ValueId x = e.Input("x", {DType::kF32, {rng.Between(1, 2), channels, size, size}});
  const auto conv = [&](int64_t in, int64_t out, int64_t k, const std::string& name) {
    std::vector<ValueId> inputs = {x, SampleWeight(e, rng, {out, in, k, k}, name)};
    if (rng.Flip(0.3)) inputs.push_back(SampleWeight(e, rng, {out}, name + "b"));
    x = e.Op("Conv", inputs, WindowAttributes(2, 1, 1, k / 2));
  };
  conv(channels, middle, kernel, "a");
  conv(middle, channels, 3, "c");
  e.Output("y", x);
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "merge_padded_convs";
  rule.family = "linear order";
  rule.before = "Conv(Conv(x, a){pads p}, c){pads q}";
  rule.after = "Conv(x, c*a){pads p + q*stride}";
  rule.precondition =
      "constant weights, no groups, the first read once; a tenth less multiplications; kernel at "
      "most 25";
  rule.loses_when = "the border is a good part of the image";
  rule.claim = Claim::kPartial;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.wrong = &Wrong;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::merge_padded_convs
