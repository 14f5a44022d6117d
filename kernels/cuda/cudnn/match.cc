#include "kernels/cuda/cudnn/match.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "kernels/cuda/backend/format_range.h"

namespace mendel::cuda {
namespace {

bool HasElements(const Graph& graph, const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) { return NumElements(graph.type(input)) > 0; }) &&
         NumElements(node.outputs[0]) > 0;
}

/// Shapes and geometry; nullopt where cuDNN has no such convolution.
std::optional<CudnnConvolution> GeometryOf(const Graph& graph, const Node& node) {
  const bool transposed = node.op->name == "ConvTranspose";
  if (!transposed && node.op->name != "Conv") return std::nullopt;
  CudnnConvolution conv;
  conv.dtype = node.outputs[0].dtype;
  conv.transposed = transposed;
  conv.x = graph.type(node.inputs[0]).shape;
  conv.w = graph.type(node.inputs[1]).shape;
  conv.y = node.outputs[0].shape;
  const bool known =
      conv.dtype == DType::kF32 || conv.dtype == DType::kF16 || conv.dtype == DType::kBF16;
  if (!known || conv.x.size() < 3 || conv.x.size() > 5 || !HasElements(graph, node))
    return std::nullopt;
  conv.strides = node.attrs.IntList("strides");
  conv.dilations = node.attrs.IntList("dilations");
  const Ints& pads = node.attrs.IntList("pads");
  const size_t spatial = conv.strides.size();
  for (size_t d = 0; d < spatial; ++d) {
    int64_t end = pads[spatial + d];
    if (transposed) {
      // Less than a stride of output padding is rounded away by the convolution that this one is
      // the transpose of.
      const int64_t extra = node.attrs.IntList("output_padding")[d];
      end -= extra - extra % conv.strides[d];
    }
    if (pads[d] < 0 || end < 0) return std::nullopt;
    conv.pads_begin.push_back(pads[d]);
    conv.pads_end.push_back(end);
  }
  return conv;
}

/// A convolution and the part of its epilogue that is found so far.
struct Chain {
  CudnnConvolution convolution;
  ValueId x, w, result;
  std::optional<ValueId> bias, residual;
  std::set<int32_t> nodes;
};

/// True when `shape`, broadcast to `y`, differs by channels alone.
bool IsPerChannel(const Shape& shape, const Shape& y) {
  if (shape.size() > y.size()) return false;
  const size_t missing = y.size() - shape.size();
  for (size_t d = 0; d < y.size(); ++d) {
    const int64_t extent = d < missing ? 1 : shape[d - missing];
    if (extent != (d == 1 ? y[1] : 1)) return false;
  }
  return true;
}

/// Takes the product of the result and its Sigmoid along; false where there is none.
bool ExtendBySilu(const GroupingScope& scope, Chain& chain) {
  const Graph& graph = scope.graph;
  const ValueId result = chain.result;
  const std::vector<int32_t>& users = graph.users(result.node);
  if (users.size() != 2 || graph.IsOutput(result.node)) return false;
  for (const int32_t sigmoid : users) {
    const int32_t product = scope.OnlyUser(sigmoid);
    const bool both = graph.node(sigmoid).op->name == "Sigmoid" && product >= 0 &&
                      std::count(users.begin(), users.end(), product) == 1 &&
                      graph.node(product).op->name == "Mul";
    if (!both || !scope.IsFree(sigmoid) || !scope.IsFree(product)) continue;
    chain.convolution.activation = CudnnActivation::kSilu;
    chain.nodes.insert({sigmoid, product});
    chain.result = {product, 0};
    return true;
  }
  return false;
}

/// The activation that `node` is; kNone where it is none.
CudnnActivation ActivationOf(const Node& node) {
  if (node.op->name == "Relu") return CudnnActivation::kRelu;
  if (node.op->name == "Sigmoid") return CudnnActivation::kSigmoid;
  if (node.op->name != "Gelu") return CudnnActivation::kNone;
  return node.attrs.Str("approximate") == "tanh" ? CudnnActivation::kGeluTanh
                                                 : CudnnActivation::kGelu;
}

/// Takes the next node along; false where the epilogue ends.
bool Extend(const GroupingScope& scope, Numerics numerics, bool activations, Chain& chain) {
  if (chain.convolution.HasActivation()) return false;
  if (activations && ExtendBySilu(scope, chain)) return true;
  const int32_t user = scope.OnlyUser(chain.result.node);
  if (user < 0 || !scope.IsFree(user)) return false;
  const Node& node = scope.graph.node(user);
  const CudnnActivation activation = ActivationOf(node);
  const bool is_relu = activation == CudnnActivation::kRelu &&
                       (numerics != Numerics::kStrict || chain.convolution.transposed);
  if (is_relu || (activations && activation != CudnnActivation::kNone)) {
    chain.convolution.activation = activation;
  } else if (node.op->name == "Add" && node.outputs[0].shape == chain.convolution.y) {
    const ValueId other = node.inputs[node.inputs[0] == chain.result ? 1 : 0];
    const Shape& shape = scope.graph.type(other).shape;
    const bool is_last = scope.IsThereBefore(other, chain.result.node);
    const bool as_bias = !chain.bias.has_value() && IsPerChannel(shape, chain.convolution.y);
    if (!is_last || (!as_bias && (chain.residual.has_value() || shape != chain.convolution.y)))
      return false;
    (as_bias ? chain.bias : chain.residual) = other;
  } else {
    return false;
  }
  chain.nodes.insert(user);
  chain.result = {user, 0};
  return true;
}

Tensor Zeros(DType dtype, int64_t count) {
  return Tensor::FromDoubles({dtype, {count}},
                             std::vector<double>(static_cast<size_t>(count), 0.0));
}

ConvolutionMatch Finished(const Chain& chain) {
  ConvolutionMatch match{chain.convolution, {chain.result, chain.nodes, {}, nullptr}, {}};
  const DType dtype = chain.convolution.dtype;
  const auto add = [&](KernelOperand operand, CudnnTensorId id) {
    match.group.operands.push_back(std::move(operand));
    match.tensors.push_back(id);
  };
  add({chain.x, {}, dtype}, kCudnnX);
  add({chain.w, {}, dtype}, kCudnnW);
  match.convolution.residual = chain.residual.has_value();
  match.convolution.bias =
      chain.bias.has_value() || match.convolution.residual || match.convolution.HasActivation();
  if (chain.bias.has_value()) {
    add({*chain.bias, {}, dtype}, kCudnnBias);
  } else if (match.convolution.bias) {
    add({{}, Zeros(dtype, chain.convolution.y[1]), dtype}, kCudnnBias);
  }
  if (chain.residual.has_value()) add({*chain.residual, {}, dtype}, kCudnnResidual);
  match.tensors.push_back(kCudnnY);
  return match;
}

}  // namespace

bool AddsBeyond(const Graph& graph, const ConvolutionMatch& match, DType format) {
  for (size_t k = 0; k < match.group.operands.size(); ++k) {
    const ValueId value = match.group.operands[k].value;
    const bool is_added = match.tensors[k] == kCudnnBias || match.tensors[k] == kCudnnResidual;
    if (is_added && value.node >= 0 && ExceedsByConstants(graph, value, format)) return true;
  }
  return false;
}

void SetForm(ConvolutionMatch& match, const MemoryFormat& form) {
  match.convolution.channels_last = form.channels_last;
  match.convolution.dtype = form.rounded.value_or(match.convolution.dtype);
  match.group.result_form = form;
  for (size_t k = 0; k < match.group.operands.size(); ++k) {
    KernelOperand& operand = match.group.operands[k];
    const bool is_bias = match.tensors[k] == kCudnnBias;
    match.group.forms.push_back(
        {.channels_last = form.channels_last && !is_bias, .rounded = form.rounded});
    operand.dtype = match.convolution.dtype;
    if (operand.value.node < 0) operand.table = Zeros(operand.dtype, match.convolution.y[1]);
  }
}

std::vector<ConvolutionMatch> MatchConvolution(const GroupingScope& scope, int32_t node,
                                               Numerics numerics, bool activations) {
  if (!scope.IsFree(node)) return {};
  const Node& it = scope.graph.node(node);
  std::optional<CudnnConvolution> convolution = GeometryOf(scope.graph, it);
  if (!convolution.has_value()) return {};
  Chain chain{*std::move(convolution),
              it.inputs[0],
              it.inputs[1],
              {node, 0},
              std::nullopt,
              std::nullopt,
              {node}};
  if (it.inputs.size() > 2) chain.bias = it.inputs[2];
  std::vector<ConvolutionMatch> matches = {Finished(chain)};
  while (Extend(scope, numerics, activations, chain)) matches.push_back(Finished(chain));
  std::reverse(matches.begin(), matches.end());
  return matches;
}

}  // namespace mendel::cuda
