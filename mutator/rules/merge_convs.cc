// Parallel convolutions on one input become one with concatenated output channels.
//
//   before  Conv(x, w1, b1), Conv(x, w2, b2), ..
//           (equal kernel, strides, dilations and pads, group 1)
//   after   Split(Conv(x, [w1; w2; ..], [b1; b2; ..])) along the channels
//
// Exact.
//
// Source: TASO figure 2.

#include <algorithm>

#include "graph/emitter.h"
#include "mutator/matches_by_last_node.h"
#include "mutator/parallel.h"

namespace mendel::rules::merge_convs {
namespace {

Shape KernelOf(const Graph& graph, const Node& conv) {
  const Shape& w = graph.type(conv.inputs[1]).shape;
  return Shape(w.begin() + 2, w.end());
}

bool TakesPart(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  return node.op->name == "Conv" && node.attrs.Int("group") == 1 &&
         !IsWeight(graph, node.inputs[0]) &&
         std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                     [&](ValueId v) { return IsWeight(graph, v); });
}

bool Alike(const Graph& graph, int32_t a, int32_t b) {
  const Node &one = graph.node(a), &other = graph.node(b);
  return one.attrs == other.attrs && one.inputs.size() == other.inputs.size() &&
         KernelOf(graph, one) == KernelOf(graph, other);
}

MatchesByLastNode AllMatches(const Graph& graph) {
  MatchesByLastNode matches;
  for (const auto& group :
       SiblingGroups(graph, {.operand = 0, .takes_part = &TakesPart, .alike = &Alike}))
    matches[group.back()].push_back({group, {}});
  return matches;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return MatchesEndingAt(graph, node, &AllMatches);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  if (inputs.size() != 1)
    return absl::FailedPreconditionError("the convolutions do not share their input");
  std::vector<ValueId> weights, biases;
  Ints sizes;
  for (const GraphOutput& output : subprogram.outputs()) {
    const Node& conv = subprogram.node(output.value.node);
    weights.push_back(e.CopyConstantExpression(subprogram, conv.inputs[1]));
    if (conv.inputs.size() > 2)
      biases.push_back(e.CopyConstantExpression(subprogram, conv.inputs[2]));
    sizes.push_back(e.shape(weights.back())[0]);
  }
  std::vector<ValueId> operands = {inputs[0], e.Concat(weights, 0)};
  if (!biases.empty()) operands.push_back(e.Concat(biases, 0));
  const ValueId y =
      e.Op("Conv", operands, subprogram.node(subprogram.outputs()[0].value.node).attrs);
  const std::vector<ValueId> parts =
      e.Ops("Split", {y}, sizes.size(), {{"axis", int64_t{1}}, {"sizes", sizes}});
  for (size_t k = 0; k < parts.size(); ++k) e.Output(subprogram.outputs()[k].name, parts[k]);
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const ValueId x = e.Input("x", {DType::kF32, {rng.Between(1, 2), 3, 6, 5}});
  const int64_t kernel = rng.Between(1, 3);
  const int64_t stride = rng.Between(1, 2);
  const bool biased = rng.Flip();
  const Attributes attrs{
      {"strides", Ints{stride, stride}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 0, 1, 0}}};
  for (int64_t k = 0; k < rng.Between(2, 4); ++k) {
    const std::string number = std::to_string(k);
    const int64_t channels = rng.Between(1, 4);
    std::vector<ValueId> inputs = {
        x, e.Constant(Tensor::Filled({DType::kF32, {channels, 3, kernel, kernel}}, 1.5),
                      "w" + number)};
    if (biased)
      inputs.push_back(e.Constant(Tensor::Filled({DType::kF32, {channels}}, 0.5), "b" + number));
    e.Output("y" + number, e.Op("Conv", inputs, attrs));
  }
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "merge_convs";
  rule.family = "sharing";
  rule.before = "Conv(x, w1, b1), Conv(x, w2, b2), ..";
  rule.after = "Split(Conv(x, [w1; w2; ..], [b1; b2; ..]))";
  rule.precondition = "one input, equal kernels, strides, dilations and pads, group 1";
  rule.loses_when = "the split is a copy";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::merge_convs
