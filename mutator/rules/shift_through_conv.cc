// A per-channel shift moves through a convolution into its bias.
//
//   before  Conv(x + t, w, b)        Conv(BatchNorm(x), w, b)
//   after   Conv(x, w, b + w*t)      Conv(x, w*s, b + w*t)
//           (w*t)[o] = sum over c and taps of w[o, c, ..] t[c]
//
// Partial: wrong where a window reads padding, which is zero in the model and t in the mutant.
// Without padding it is exact. Pre-activation networks have such shifts.

#include <algorithm>
#include <numeric>

#include "mutator/batch_norm.h"
#include "mutator/conv_at.h"
#include "mutator/conv_chain.h"
#include "mutator/parallel.h"
#include "mutator/sample.h"

namespace mendel::rules::shift_through_conv {
namespace {

/// The constant operand of an Add of [.., C, 1, 1] to a value of the result's shape, or -1.
int ShiftOperand(const Graph& graph, const Node& add) {
  const Shape& shape = add.outputs[0].shape;
  for (int k : {0, 1}) {
    const ValueId value = add.inputs[static_cast<size_t>(k)];
    const Shape& constant = graph.type(value).shape;
    const size_t skip = shape.size() - constant.size();
    if (!IsWeight(graph, value) || constant.size() + 1 < shape.size() ||
        NumElements(constant) != shape[1])
      continue;
    if (constant[1 - skip] == shape[1] &&
        graph.type(add.inputs[static_cast<size_t>(1 - k)]) == add.outputs[0])
      return k;
  }
  return -1;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const Node& conv = graph.node(node);
  if (conv.op->name != "Conv" || conv.attrs.Int("group") != 1 || !IsWeight(graph, conv.inputs[1]))
    return {};
  if (HasRunTimeBias(graph, conv)) return {};
  const int32_t first = conv.inputs[0].node;
  if (graph.OnlyUser(first) < 0 || IsWeight(graph, {first, 0})) return {};
  const Node& shift = graph.node(first);
  const bool adds = shift.op->name == "Add" && ShiftOperand(graph, shift) >= 0;
  if (!adds && !IsConstantBatchNorm(graph, first)) return {};
  return {{{first, node}, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const Node& conv = subprogram.node(subprogram.outputs()[0].value.node);
  const int32_t first = conv.inputs[0].node;
  const Node& shift = subprogram.node(first);
  const int64_t channels = shift.outputs[0].shape[1];
  ValueId w = e.CopyConstantExpression(subprogram, conv.inputs[1]);
  const ValueId taps = w;
  ValueId constant;
  if (shift.op->name == "Add") {
    const size_t k = static_cast<size_t>(ShiftOperand(subprogram, shift));
    constant = e.CopyConstantExpression(subprogram, shift.inputs[k]);
  } else {
    const ChannelAffine affine = AffineOf(e, subprogram, first);
    w = ScaleColumns(e, w, affine.factor);
    constant = affine.shift;
  }
  Ints space(e.shape(w).size() - 2);
  std::iota(space.begin(), space.end(), 2);
  const ValueId sums = e.Op("ReduceSum", {taps}, {{"axes", space}, {"keepdims", int64_t{0}}});
  ValueId bias = e.Reshape(e.MatMul(sums, e.Reshape(constant, {channels, 1})), {e.shape(w)[0]});
  if (conv.inputs.size() > 2)
    bias = e.Add(bias, e.CopyConstantExpression(subprogram, conv.inputs[2]));
  e.Output("out0", e.Op("Conv", {x, w, bias}, conv.attrs, conv.name));
  return e.Finish();
}

/// Positions whose window reaches into the padding, dimension by dimension.
absl::StatusOr<std::vector<std::vector<Box>>> Wrong(const Graph& subprogram, const Match&) {
  const int32_t id = subprogram.outputs()[0].value.node;
  const ConvShape shape = ShapeOf(subprogram, id);
  std::vector<Box> boxes;
  for (size_t d = 0; d < shape.windows.size(); ++d) {
    const Window& window = shape.windows[d];
    for (int64_t o = 0; o < shape.out_spatial[d]; ++o) {
      if (window.Position(o, 0) >= 0 && window.Position(o, window.kernel - 1) < window.input)
        continue;
      Box box = Box::Whole(subprogram.node(id).outputs[0].shape);
      box.begin[d + 2] = o;
      box.end[d + 2] = o + 1;
      boxes.push_back(box);
    }
  }
  return std::vector<std::vector<Box>>{boxes};
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  ValueId x = e.Input("x", {DType::kF32, {2, 3, rng.Between(5, 8), rng.Between(5, 8)}});
  if (rng.Flip()) {
    const Shape shape = rng.Flip() ? Shape{1, 3, 1, 1} : Shape{3, 1, 1};
    x = e.Add(x, SampleWeight(e, rng, shape, "t"));
  } else {
    const auto filled = [&](const char* name, double value) {
      return e.Constant(Tensor::Filled({DType::kF32, {3}}, value), name);
    };
    x = e.Op("BatchNormalization", {x, filled("scale", 2), filled("shift", 0.5),
                                    filled("mean", 0.25), filled("variance", 3)});
  }
  std::vector<ValueId> inputs = {x, SampleWeight(e, rng, {2, 3, 3, 3}, "w")};
  if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {2}, "b"));
  const int64_t pad = rng.Between(0, 2) > 0 ? 1 : 0;
  e.Output("y", e.Op("Conv", inputs, WindowAttributes(2, rng.Between(1, 2), 1, pad)));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "shift_through_conv";
  rule.family = "constants";
  rule.before = "Conv(x + t, w, b), Conv(BatchNorm(x), w, b)";
  rule.after = "Conv(x, w, b + w*t), Conv(x, w*s, b + w*t)";
  rule.precondition = "t constant per channel, group 1, read once";
  rule.loses_when =
      "correcting the padded borders costs more than the pass over the data that is saved";
  rule.claim = Claim::kPartial;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.wrong = &Wrong;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::shift_through_conv
