// Kernels are embedded in larger ones, so that the 3x3 and 5x5 code of libraries applies.
//
//   before  Conv(x, w[O, C, K_h, K_w]), some extent even or below the largest
//   after   Conv(x, pad(w)[O, C, K, K]){pads grown by the padding of the kernel},  K = 3, 5 or 7
//
// Exact where all values are finite (0 * inf is NaN). A 1x3 kernel does three times the arithmetic.

#include <algorithm>

#include "mutator/conv_chain.h"

namespace mendel::rules::pad_kernel {
namespace {

constexpr double kMaxGrowth = 3;

int64_t Target(const ConvShape& shape) {
  int64_t target = 1;
  for (const Window& window : shape.windows) target = std::max(target, window.kernel);
  return target % 2 == 0 ? target + 1 : target;
}

bool Accepts(const ConvShape& shape) {
  const int64_t target = Target(shape);
  double growth = 1;
  for (const Window& window : shape.windows)
    growth *= static_cast<double>(target) / static_cast<double>(window.kernel);
  return growth > 1 && growth <= kMaxGrowth && target <= 7;
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const ConvLink& link = chain->front();
  const ConvShape shape = ShapeOf(subprogram, link.conv);
  const Node& conv = subprogram.node(link.conv);
  const int64_t target = Target(shape);
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  ValueId w = e.CopyConstantExpression(subprogram, conv.inputs[1]);
  Ints pads = conv.attrs.IntList("pads");
  for (size_t d = 0; d < shape.windows.size(); ++d) {
    const int64_t after = target - shape.windows[d].kernel;
    w = e.PadZero(w, static_cast<int64_t>(d + 2), 0, after);
    pads[shape.windows.size() + d] += after * shape.windows[d].dilation;
  }
  std::vector<ValueId> inputs = {x, w};
  if (conv.inputs.size() > 2)
    inputs.push_back(e.CopyConstantExpression(subprogram, conv.inputs[2]));
  const Attributes attrs =
      ChangedWindows(subprogram, link.conv, {.strides = {}, .dilations = {}, .pads = pads});
  e.Output("out0", EmitTail(e, subprogram, link, e.Op("Conv", inputs, attrs, conv.name)));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const int64_t height = rng.Between(1, 4);
  const int64_t stride = rng.Between(1, 2), dilation = rng.Between(1, 2);
  return MakeConvSample(
      {.input = {1, 2, rng.Between(8, 9), rng.Between(8, 9)},
       .weight = {3, 2, height, height == 1 ? 3 : rng.Between(2, 4)},
       .strides = {stride, stride},
       .dilations = {dilation, dilation},
       .pads = {rng.Between(0, 1), rng.Between(0, 1), rng.Between(0, 1), rng.Between(0, 1)},
       .bias = rng.Flip()});
}

Rule Make() {
  Rule rule;
  rule.name = "pad_kernel";
  rule.family = "kernel shape";
  rule.before = "Conv(x, w[O, C, Kh, Kw])";
  rule.after = "Conv(x, zero-padded w[O, C, K, K]), K odd";
  rule.precondition = "at most 3 times the taps, K at most 7; any stride, dilation and groups";
  rule.loses_when = "the square kernel's implementation is not faster by the added arithmetic";
  rule.match = [](const Graph& graph, int32_t node) {
    return MatchLink(graph, node, Accepts, {{}});
  };
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::pad_kernel
