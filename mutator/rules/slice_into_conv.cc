// A slice of a convolution's result is computed alone.
//
//   before  Slice(Conv(x, w, b)){starts, ends, steps}
//   after   Conv(x slice, w[rows], b[rows]){stride * step}, first window at starts
//
// Exact: an output element does not depend on the others. Crops, strides and channel ranges move
// into the convolution.

#include <algorithm>

#include "mutator/conv_at.h"
#include "mutator/conv_chain.h"
#include "mutator/parallel.h"
#include "mutator/sample.h"

namespace mendel::rules::slice_into_conv {
namespace {

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const Node& slice = graph.node(node);
  if (slice.op->name != "Slice" || IsWeight(graph, {node, 0}) || NumElements(slice.outputs[0]) == 0)
    return {};
  const int32_t conv = slice.inputs[0].node;
  const Node& producer = graph.node(conv);
  if (producer.op->name != "Conv" || graph.OnlyUser(conv) < 0) return {};
  for (size_t k = 1; k < producer.inputs.size(); ++k) {
    if (!IsWeight(graph, producer.inputs[k])) return {};
  }
  const Ints& steps = slice.attrs.IntList("steps");
  if (std::any_of(steps.begin(), steps.end(), [](int64_t s) { return s < 1; })) return {};
  const bool channels = slice.outputs[0].shape[1] != producer.outputs[0].shape[1];
  if (channels && (producer.attrs.Int("group") != 1 || steps[1] != 1)) return {};
  return {{{conv, node}, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  Emitter e;
  ValueId x = e.InputsOf(subprogram)[0];
  const Node& slice = subprogram.node(subprogram.outputs()[0].value.node);
  const int32_t id = slice.inputs[0].node;
  const Node& conv = subprogram.node(id);
  const ConvShape shape = ShapeOf(subprogram, id);
  const Ints& starts = slice.attrs.IntList("starts");
  const Ints& ends = slice.attrs.IntList("ends");
  const Ints& steps = slice.attrs.IntList("steps");
  x = e.Slice(x, 0, starts[0], ends[0], steps[0]);
  const ValueId w =
      e.Slice(e.CopyConstantExpression(subprogram, conv.inputs[1]), 0, starts[1], ends[1]);
  std::optional<ValueId> bias;
  if (conv.inputs.size() > 2)
    bias = e.Slice(e.CopyConstantExpression(subprogram, conv.inputs[2]), 0, starts[1], ends[1]);
  std::vector<Reads> reads;
  for (size_t d = 0; d < shape.windows.size(); ++d) {
    Reads read = ReadsOf(shape.windows[d], slice.outputs[0].shape[d + 2]);
    read.first += starts[d + 2] * read.stride;
    if (read.outputs > 1) read.stride *= steps[d + 2];
    reads.push_back(read);
  }
  e.Output("out0", ConvAt(e, x, w, bias, reads, shape.group, conv.name));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const size_t rank = static_cast<size_t>(rng.Between(1, 2));
  Shape input = {2, 2}, weight = {4, 2};
  for (size_t d = 0; d < rank; ++d) {
    input.push_back(rng.Between(5, 9));
    weight.push_back(rng.Between(1, 3));
  }
  std::vector<ValueId> inputs = {e.Input("x", {DType::kF32, input}),
                                 SampleWeight(e, rng, weight, "w")};
  if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {4}, "b"));
  const int64_t pad = rng.Between(0, 1);
  const ValueId y = e.Op("Conv", inputs, WindowAttributes(rank, rng.Between(1, 2), 1, pad));
  Ints starts, ends = e.shape(y), steps;
  for (size_t d = 0; d < ends.size(); ++d) {
    starts.push_back(rng.Between(0, ends[d] - 1));
    ends[d] = rng.Between(starts[d] + 1, ends[d]);
    steps.push_back(d == 1 ? 1 : rng.Between(1, 2));
  }
  e.Output("y", e.Op("Slice", {y}, {{"starts", starts}, {"ends", ends}, {"steps", steps}}));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "slice_into_conv";
  rule.family = "linear order";
  rule.before = "Slice(Conv(x, w, b))";
  rule.after = "Conv(slice of x, rows of w, rows of b){stride * step}";
  rule.precondition =
      "constant weights, positive steps, the convolution is read once; channel ranges: group 1";
  rule.loses_when = "nothing is cut away";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::slice_into_conv
