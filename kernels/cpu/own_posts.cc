#include "kernels/cpu/own_posts.h"

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

bool SetActivation(dnnl::algorithm way, float alpha, float beta, OwnPosts& posts) {
  using Kind = WinogradEpilogue::Activation;
  posts.epilogue.alpha = alpha;
  posts.epilogue.beta = beta;
  if (way == dnnl::algorithm::eltwise_relu) {
    posts.epilogue.activation = Kind::kRelu;
  } else if (way == dnnl::algorithm::eltwise_clip) {
    posts.epilogue.activation = Kind::kClip;
  } else {
    posts.epilogue.activation = Kind::kCall;
    posts.epilogue.known = KnownOf(way);
    posts.call = {FindTileFunction(TileNameOf(way)), {alpha, beta}, way == dnnl::algorithm::eltwise_swish};
    return posts.call.function != nullptr && !(posts.call.gated && alpha != 1);
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
  }
}

}  // namespace

WinogradEpilogue OwnPosts::At(const Bindings& bindings, const Place& bias, const std::optional<Place>& residual) const {
  WinogradEpilogue at = epilogue;
  at.bias = bindings.At<const float>(bias);
  at.residual = residual.has_value() ? bindings.At<const float>(*residual) : nullptr;
  at.call = &RunActivation;
  at.context = &call;
  return at;
}

std::optional<OwnPosts> OwnPostsOf(const Epilogue& epilogue) {
  OwnPosts posts;
  const dnnl::post_ops operations = epilogue.attributes.get_post_ops();
  for (int k = 0; k < operations.len(); ++k) {
    if (operations.kind(k) == dnnl::primitive::kind::sum) {
      posts.epilogue.residual_last = posts.epilogue.activation != WinogradEpilogue::Activation::kNone;
      continue;
    }
    if (operations.kind(k) != dnnl::primitive::kind::eltwise) return std::nullopt;
    float scale = 1, alpha = 0, beta = 0;
    dnnl::algorithm way{};
    operations.get_params_eltwise(k, scale, way, alpha, beta);
    if (scale != 1 || !SetActivation(way, alpha, beta, posts)) return std::nullopt;
  }
  return posts;
}

}  // namespace mendel::cpu
