// Products of codes by the kernels of integer_conv.h.

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/cpu/lowering/lower_integer.h"
#include "kernels/cpu/simd/native_isa.h"

namespace mendel::cpu {
namespace {

/// The extents of a Conv node. Missing dimensions come first, with extents of one.
IntegerConv GeometryOfConv(const Graph& graph, int32_t root) {
  const Node& node = graph.node(root);
  const Shape &source = graph.type(node.inputs[0]).shape, &result = node.outputs[0].shape;
  const Shape& weights = graph.type(node.inputs[1]).shape;
  const Ints &strides = node.attrs.IntList("strides"), &pads = node.attrs.IntList("pads");
  const Ints& dilations = node.attrs.IntList("dilations");
  IntegerConv conv;
  conv.batch = source[0];
  conv.groups = node.attrs.Int("group");
  conv.inputs = weights[1];
  conv.outputs = weights[0] / conv.groups;
  const size_t spatial = source.size() - 2;
  for (size_t d = 0; d < spatial; ++d) {
    const size_t to = 3 - spatial + d;
    conv.in[to] = source[2 + d];
    conv.out[to] = result[2 + d];
    conv.taps[to] = weights[2 + d];
    conv.pad[to] = pads[d];
    conv.stride[to] = strides[d];
    conv.dilation[to] = dilations[d];
  }
  return conv;
}

IntegerConv GeometryOfProduct(const Graph& graph, int32_t root) {
  const Shape& right = graph.type(graph.node(root).inputs[1]).shape;
  IntegerConv conv;
  conv.inputs = right[0];
  conv.outputs = right[1];
  conv.in[2] = conv.out[2] = NumElements(graph.node(root).outputs[0]) / right[1];
  return conv;
}

/// False for an activation that is no range.
bool SetRange(const std::vector<Activation>& activations, IntegerConv& conv) {
  for (const Activation& activation : activations) {
    if (activation.algorithm == dnnl::algorithm::eltwise_clip) {
      conv.low = activation.alpha;
      conv.high = activation.beta;
    } else if (activation.algorithm == dnnl::algorithm::eltwise_relu && activation.alpha == 0) {
      conv.low = 0;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

bool MultipliesInt8() { return SumsInt8Exactly() || NativeIsaHere() != NativeIsa::kNone; }

std::shared_ptr<const IntegerConv> NativeInteger(const Graph& graph, int32_t root,
                                                 const IntegerProduct& product) {
  const bool is_conv = graph.node(root).op->name == "Conv";
  if (is_conv && graph.type(graph.node(root).inputs[0]).shape.size() > 5) return nullptr;
  IntegerConv conv = is_conv ? GeometryOfConv(graph, root) : GeometryOfProduct(graph, root);
  conv.from = graph.type(product.source).dtype;
  conv.result = product.result;
  conv.source_zero = product.source_zero;
  conv.result_zero = product.result_zero;
  conv.scale = product.scale;
  for (size_t c = 0; c < product.bias.size(); ++c)
    conv.shift.push_back(static_cast<float>(static_cast<double>(product.bias[c]) *
                                            static_cast<double>(product.scale[c])));
  if (product.source_zero < LowestInteger(conv.from) ||
      product.source_zero > HighestInteger(conv.from))
    return nullptr;
  if (product.runtime_zero.has_value()) {
    const Node& cast = graph.node(product.runtime_zero->node);
    if (graph.type(cast.inputs[0]).dtype != conv.from) return nullptr;
  }
  if (!SetRange(product.activations, conv) || !SuitsIntegerConv(conv)) return nullptr;
  return std::make_shared<const IntegerConv>(std::move(conv));
}

StoredIntegers StoredOf(const Graph& graph, int32_t root, const IntegerProduct& product) {
  const IntegerConv& conv = *product.native;
  const bool is_conv = graph.node(root).op->name == "Conv";
  StoredIntegers stored;
  stored.weights = product.weights->integers.data();
  stored.groups = conv.groups;
  stored.outputs = conv.outputs;
  stored.inputs = conv.inputs;
  stored.taps = conv.Taps();
  stored.run = conv.Run();
  stored.channel_step = is_conv ? stored.Depth() : 1;
  stored.input_step = is_conv ? stored.taps : conv.outputs;
  stored.tap_step = is_conv ? 1 : 0;
  return stored;
}

absl::Status LowerNativeInteger(Lowering& lowering, const Group& group) {
  const IntegerProduct& product = *group.integer;
  const Graph& graph = lowering.graph();
  const int32_t root = group.nodes[0];
  const bool is_conv = graph.node(root).op->name == "Conv";
  const ValueId result{group.nodes.back(), 0};
  const auto layout = [&](ValueId value) {
    const Shape& shape = lowering.shape(value);
    return is_conv ? Canonical(ChannelsLastLayout(shape), shape) : PlainLayout(shape);
  };
  IntegerConv conv = *product.native;
  conv.source = lowering.In(product.source, layout(product.source));
  if (product.runtime_zero.has_value()) conv.zero = lowering.Plain(*product.runtime_zero);
  conv.weights =
      lowering.DeferredConstant(product.packed.get(), product.packed->Bytes(),
                                [integer = group.integer, stored = StoredOf(graph, root, product)](
                                    std::byte* to) { integer->packed->Pack(stored, to); });
  conv.to = lowering.Allocate(result, layout(result));
  std::vector<Place> touched = {conv.source, conv.weights, conv.to};
  if (conv.zero.has_value()) touched.push_back(*conv.zero);
  const int threads = lowering.options().threads;
  const int64_t scratch = IntegerConvScratch(conv, threads);
  lowering.Emit(group.nodes, "int8 quads",
                MakeIntegerConvKernel(std::move(conv), product.packed, threads), touched, scratch);
  return absl::OkStatus();
}

}  // namespace mendel::cpu
