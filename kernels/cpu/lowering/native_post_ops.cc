#include "kernels/cpu/lowering/native_post_ops.h"

#include <algorithm>
#include <string_view>

namespace mendel::cpu {
namespace {

std::string_view TileNameOf(dnnl::algorithm way) {
  switch (way) {
    case dnnl::algorithm::eltwise_logistic:
    case dnnl::algorithm::eltwise_swish:
      return "Sigmoid";
    case dnnl::algorithm::eltwise_tanh:
      return "Tanh";
    case dnnl::algorithm::eltwise_elu:
      return "Elu";
    case dnnl::algorithm::eltwise_hardswish:
      return "HardSwish";
    case dnnl::algorithm::eltwise_gelu_tanh:
      return "GeluTanh";
    case dnnl::algorithm::eltwise_gelu_erf:
      return "GeluErf";
    default:
      return "";
  }
}

WinogradEpilogue::Known KnownOf(dnnl::algorithm way) {
  switch (way) {
    case dnnl::algorithm::eltwise_logistic:
      return WinogradEpilogue::Known::kSigmoid;
    case dnnl::algorithm::eltwise_swish:
      return WinogradEpilogue::Known::kSwish;
    case dnnl::algorithm::eltwise_hardswish:
      return WinogradEpilogue::Known::kHardSwish;
    default:
      return WinogradEpilogue::Known::kNone;
  }
}

bool SetActivation(dnnl::algorithm way, float alpha, float beta, NativePostOps& post_ops) {
  using Kind = WinogradEpilogue::Activation;
  if (way == dnnl::algorithm::eltwise_linear) {  // it ends the activation before it
    if (post_ops.epilogue.activation != Kind::kCall || post_ops.epilogue.residual_last)
      return false;
    post_ops.call.factor = alpha;
    post_ops.call.summand = beta;
    post_ops.epilogue.known = WinogradEpilogue::Known::kNone;
    return true;
  }
  post_ops.epilogue.alpha = alpha;
  post_ops.epilogue.beta = beta;
  if (way == dnnl::algorithm::eltwise_relu) {
    post_ops.epilogue.activation = Kind::kRelu;
  } else if (way == dnnl::algorithm::eltwise_clip) {
    post_ops.epilogue.activation = Kind::kClip;
  } else {
    post_ops.epilogue.activation = Kind::kCall;
    post_ops.epilogue.known = KnownOf(way);
    post_ops.call.function = FindTileFunction(TileNameOf(way));
    post_ops.call.parameters = {alpha, beta};
    post_ops.call.gated = way == dnnl::algorithm::eltwise_swish;
    return post_ops.call.function != nullptr && !(post_ops.call.gated && alpha != 1);
  }
  return true;
}

/// WinogradEpilogue::call with an ActivationCall as its context.
void RunActivation(const void* context, float* values, int64_t count) {
  const ActivationCall& call = *static_cast<const ActivationCall*>(context);
  constexpr int64_t kMost = 128;
  float results[kMost];
  for (int64_t begin = 0; begin < count; begin += kMost) {
    const int64_t size = std::min(kMost, count - begin);
    float* part = values + begin;
    call.function(results, &part, size, call.parameters.data());
    for (int64_t i = 0; i < size; ++i) part[i] = call.gated ? part[i] * results[i] : results[i];
    if (call.factor == 1 && call.summand == 0) continue;
    for (int64_t i = 0; i < size; ++i) part[i] = part[i] * call.factor + call.summand;
  }
}

}  // namespace

WinogradEpilogue NativePostOps::At(const Bindings& bindings, const Place& bias,
                                   const std::optional<Place>& residual) const {
  WinogradEpilogue at = epilogue;
  at.bias = bindings.At<const float>(bias);
  at.residual = residual.has_value() ? bindings.At<const float>(*residual) : nullptr;
  at.call = &RunActivation;
  at.context = &call;
  return at;
}

std::optional<NativePostOps> NativePostOpsOf(const Epilogue& epilogue) {
  NativePostOps post_ops;
  const dnnl::post_ops operations = epilogue.attributes.get_post_ops();
  for (int k = 0; k < operations.len(); ++k) {
    if (operations.kind(k) == dnnl::primitive::kind::sum) {
      post_ops.epilogue.residual_last =
          post_ops.epilogue.activation != WinogradEpilogue::Activation::kNone;
      continue;
    }
    if (operations.kind(k) != dnnl::primitive::kind::eltwise) return std::nullopt;
    float scale = 1, alpha = 0, beta = 0;
    dnnl::algorithm way{};
    operations.get_params_eltwise(k, scale, way, alpha, beta);
    if (scale != 1 || !SetActivation(way, alpha, beta, post_ops)) return std::nullopt;
  }
  return post_ops;
}

}  // namespace mendel::cpu
