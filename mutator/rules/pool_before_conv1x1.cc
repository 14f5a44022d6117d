// A pointwise convolution and an average pool are computed in the cheaper order.
//
//   before  AveragePool(Conv(x, w[O, C, 1..], b))         after  Conv(AveragePool(x), w, b)
//   before  ReduceMean(Conv(x, w[O, C, 1..], b)){space}   after  Conv(ReduceMean(x), w, b)
//   and the converse of both
//
// Exact: an average is linear. A bias needs pool weights that sum to one everywhere, so that
// padding is absent or not counted. Behind a pool that shrinks the image by two, as in DenseNet,
// the convolution does a quarter of the work.

#include <algorithm>
#include <numeric>

#include "graph/emitter.h"
#include "mutator/conv_chain.h"
#include "mutator/parallel.h"

namespace mendel::rules::pool_before_conv1x1 {
namespace {

bool IsConv1x1(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  return node.op->name == "Conv" && IsPointwiseConv(ShapeOf(graph, id)) &&
         std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                     [&](ValueId value) { return IsWeight(graph, value); });
}

/// The mean over space alone: a pool over the whole image.
bool IsSpatialMean(const Node& node) {
  if (node.op->name != "ReduceMean" || node.attrs.Int("keepdims") != 1) return false;
  Ints axes = node.attrs.IntList("axes");
  std::sort(axes.begin(), axes.end());
  Ints space(node.outputs[0].shape.size() - std::min<size_t>(2, node.outputs[0].shape.size()));
  std::iota(space.begin(), space.end(), 2);
  return !space.empty() && axes == space;
}

bool AveragesToOne(const Node& pool) {
  if (pool.op->name == "ReduceMean") return true;
  const Ints& pads = pool.attrs.IntList("pads");
  return pool.attrs.Int("count_include_pad") == 0 ||
         std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; });
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const Node& last = graph.node(node);
  const bool pool_last = last.op->name == "AveragePool" || IsSpatialMean(last);
  if (!pool_last && !IsConv1x1(graph, node)) return {};
  const int32_t first = last.inputs[0].node;
  if (graph.OnlyUser(first) < 0) return {};
  const bool pair =
      pool_last ? IsConv1x1(graph, first) : graph.node(first).op->name == "AveragePool";
  if (!pair) return {};
  const Node& conv = pool_last ? graph.node(first) : last;
  const Node& pool = pool_last ? last : graph.node(first);
  if (conv.inputs.size() > 2 && !AveragesToOne(pool)) return {};
  return {{{first, node}, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const Node& last = subprogram.node(subprogram.outputs()[0].value.node);
  const Node& first = subprogram.node(last.inputs[0].node);
  const auto emit = [&](const Node& node, ValueId input) {
    std::vector<ValueId> inputs = {input};
    for (size_t k = 1; k < node.inputs.size(); ++k)
      inputs.push_back(e.CopyConstantExpression(subprogram, node.inputs[k]));
    return e.Op(node.op->name, inputs, node.attrs, node.name);
  };
  e.Output("out0", emit(first, emit(last, x)));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const ValueId x = e.Input("x", {DType::kF32, {rng.Between(1, 2), 3, 6, 6}});
  std::vector<ValueId> weights = {
      e.Constant(Tensor::Filled({DType::kF32, {2, 3, 1, 1}}, 1.5), "w")};
  const bool biased = rng.Flip();
  if (biased) weights.push_back(e.Constant(Tensor::Filled({DType::kF32, {2}}, 0.5), "b"));
  const Attributes conv{
      {"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}};
  const int64_t counted = biased ? 0 : rng.Between(0, 1);
  const Attributes pool{{"kernel_shape", Ints{3, 3}},
                        {"strides", Ints{2, 2}},
                        {"dilations", Ints{1, 1}},
                        {"pads", Ints{1, 1, 1, 1}},
                        {"count_include_pad", counted}};
  const auto convolve = [&](ValueId v) {
    std::vector<ValueId> inputs = {v};
    inputs.insert(inputs.end(), weights.begin(), weights.end());
    return e.Op("Conv", inputs, conv);
  };
  if (rng.Between(0, 2) == 0) {
    e.Output("y", e.Op("ReduceMean", {convolve(x)}, {{"axes", Ints{2, 3}}}));
    return e.Finish();
  }
  e.Output("y", rng.Flip() ? e.Op("AveragePool", {convolve(x)}, pool)
                           : convolve(e.Op("AveragePool", {x}, pool)));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "pool_before_conv1x1";
  rule.family = "linear order";
  rule.before = "AveragePool(Conv(x, w[O, C, 1, 1], b))";
  rule.after = "Conv(AveragePool(x), w, b), and the converse; also the mean over space";
  rule.precondition = "no bias, or the pool's weights sum to one (padding absent or not counted)";
  rule.loses_when =
      "the pool does not shrink, or the pool on more channels costs more than the convolution "
      "saves";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::pool_before_conv1x1
