// Convolutions with stored kernels are computed only between channels whose kernels are not zero.
//
//   before  Conv(x, w), w zero outside of blocks of channels
//   after   Conv(x, rows of w){group: blocks} where the blocks are equal and in order, else
//           Concat of Conv(channels of x, block of w)
//
// Exact, and for literals only. Nonzero kernels connect the channels of one block.

#include <algorithm>

#include "mutator/conv_chain.h"
#include "mutator/parallel.h"
#include "mutator/regions/select.h"
#include "mutator/sample.h"
#include "mutator/zero_blocks.h"

namespace mendel::rules::skip_zero_channels {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 24;

/// The stored kernels of a convolution without groups; null for other nodes.
const Tensor* KernelsOf(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  if (node.op->name != "Conv" || node.attrs.Int("group") != 1 || HasRunTimeBias(graph, node))
    return nullptr;
  const Node& stored = graph.node(node.inputs[1].node);
  if (!IsConstant(stored) || !SymbolName(stored).empty()) return nullptr;
  const Tensor& kernels = ConstantValue(stored);
  const bool fits = kernels.size() > 0 && kernels.size() <= kMostElements &&
                    NumElements(node.outputs[0]) > 0 && IsFloat(kernels.dtype());
  return fits ? &kernels : nullptr;
}

/// Rows are input channels, columns output channels.
std::vector<ZeroBlock> BlocksOf(const Tensor& kernels) {
  const int64_t outputs = kernels.shape()[0], inputs = kernels.shape()[1];
  const int64_t taps = kernels.size() / (outputs * inputs);
  return ZeroBlocksOf(inputs, outputs, [&](int64_t input, int64_t output) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      if (kernels.DoubleAt((output * inputs + input) * taps + tap) != 0) return false;
    }
    return true;
  });
}

/// Block k has the k-th share of all channels.
bool AreGroups(const std::vector<ZeroBlock>& blocks, int64_t inputs, int64_t outputs) {
  const int64_t count = static_cast<int64_t>(blocks.size());
  if (count < 2 || inputs % count != 0 || outputs % count != 0) return false;
  const auto is_share = [&](const std::vector<int64_t>& list, int64_t k, int64_t all) {
    return static_cast<int64_t>(list.size()) == all / count && list.front() == k * (all / count) &&
           list.back() == (k + 1) * (all / count) - 1;
  };
  for (int64_t k = 0; k < count; ++k) {
    const ZeroBlock& block = blocks[static_cast<size_t>(k)];
    if (!is_share(block.rows, k, inputs) || !is_share(block.columns, k, outputs)) return false;
  }
  return true;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const Tensor* kernels = KernelsOf(graph, node);
  if (kernels == nullptr) return {};
  if (!AreWorthwhile(BlocksOf(*kernels), kernels->shape()[1], kernels->shape()[0])) return {};
  return {{{node}, {}}};
}

/// The block's kernels.
Tensor Cut(const Tensor& kernels, const ZeroBlock& block) {
  Shape shape = kernels.shape();
  const int64_t inputs = shape[1], taps = kernels.size() / (shape[0] * shape[1]);
  std::vector<double> values;
  for (const int64_t output : block.columns) {
    for (const int64_t input : block.rows) {
      for (int64_t tap = 0; tap < taps; ++tap)
        values.push_back(kernels.DoubleAt((output * inputs + input) * taps + tap));
    }
  }
  shape[0] = static_cast<int64_t>(block.columns.size());
  shape[1] = static_cast<int64_t>(block.rows.size());
  return Tensor::FromDoubles({kernels.dtype(), shape}, values);
}

ValueId Grouped(Emitter& e, ValueId x, const Node& conv, const Tensor& kernels,
                const std::vector<ZeroBlock>& blocks) {
  std::vector<double> values;
  Shape shape;
  for (const ZeroBlock& block : blocks) {
    const Tensor part = Cut(kernels, block);
    const std::vector<double> numbers = part.ToDoubles();
    values.insert(values.end(), numbers.begin(), numbers.end());
    shape = part.shape();
  }
  shape[0] = kernels.shape()[0];
  Attributes attrs = conv.attrs;
  attrs.Set("group", static_cast<int64_t>(blocks.size()));
  const ValueId w = e.Constant(Tensor::FromDoubles({kernels.dtype(), shape}, values));
  return e.Op("Conv", {x, w}, attrs, conv.name);
}

ValueId Apart(Emitter& e, ValueId x, const Node& conv, const Tensor& kernels,
              const std::vector<ZeroBlock>& blocks) {
  std::vector<ValueId> parts;
  for (const ZeroBlock& block : blocks) {
    const ValueId part = PickAlong(e, x, 1, block.rows);
    if (!IsBuilt(part)) return part;
    parts.push_back(e.Op("Conv", {part, e.Constant(Cut(kernels, block))}, conv.attrs, conv.name));
  }
  const ValueId y = parts.size() == 1 ? parts[0] : e.Concat(parts, 1);
  return PickAlong(e, y, 1, OrderOf(blocks, kernels.shape()[0]));
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  const int32_t id = subprogram.outputs()[0].value.node;
  const Tensor* kernels = KernelsOf(subprogram, id);
  if (kernels == nullptr) return absl::FailedPreconditionError("the kernels are no literal");
  const Node& conv = subprogram.node(id);
  const std::vector<ZeroBlock> blocks = BlocksOf(*kernels);
  if (blocks.empty()) return absl::FailedPreconditionError("the kernels are zero");
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  ValueId y = AreGroups(blocks, kernels->shape()[1], kernels->shape()[0])
                  ? Grouped(e, x, conv, *kernels, blocks)
                  : Apart(e, x, conv, *kernels, blocks);
  if (conv.inputs.size() > 2 && IsBuilt(y)) {
    Shape shape(kernels->shape().size() - 1, 1);
    shape[0] = kernels->shape()[0];
    y = e.Add(y, e.Reshape(e.CopyConstantExpression(subprogram, conv.inputs[2]), shape));
  }
  e.Output("out0", y);
  return e.Finish();
}

/// A few blocks of channels, in order or not.
absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t blocks = rng.Between(2, 3), inputs = 2 * blocks,
                outputs = blocks * rng.Between(1, 2);
  const bool in_order = rng.Flip();
  const auto block_of = [&](int64_t at, int64_t extent) {
    return in_order ? at * blocks / extent : rng.Between(0, blocks - 1);
  };
  std::vector<int64_t> of_input, of_output;
  for (int64_t i = 0; i < inputs; ++i) of_input.push_back(block_of(i, inputs));
  for (int64_t o = 0; o < outputs; ++o) of_output.push_back(block_of(o, outputs));
  const int64_t kernel = rng.Between(1, 3);
  std::vector<double> values;
  for (const int64_t output : of_output) {
    for (const int64_t input : of_input) {
      for (int64_t tap = 0; tap < kernel * kernel; ++tap)
        values.push_back(input == output ? rng.Normal() : 0);
    }
  }
  const TensorType type{DType::kF32, {outputs, inputs, kernel, kernel}};
  std::vector<ValueId> operands = {e.Input("x", {DType::kF32, {rng.Between(1, 2), inputs, 5, 5}}),
                                   e.Constant(Tensor::FromDoubles(type, values))};
  if (rng.Flip()) operands.push_back(SampleWeight(e, rng, {outputs}, "b"));
  e.Output("y", e.Op("Conv", operands, WindowAttributes(2, rng.Between(1, 2), 1, kernel / 2)));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "skip_zero_channels";
  rule.family = "known numbers";
  rule.before = "Conv(x, w), w zero outside of at most 16 blocks of channels";
  rule.after = "Conv(x, rows of w){group}, or Concat of Conv(channels of x, block of w)";
  rule.precondition = "w is a literal, no groups; at least a quarter of it lies outside of blocks";
  rule.loses_when = "blocks are many or small";
  rule.reads_values = true;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::skip_zero_channels
