#include "kernels/cuda/cudnn/convolution.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/cudnn/descriptor.h"
#include "kernels/cuda/cudnn/engine_json.h"
#include "kernels/cuda/cudnn/engine_plan.h"
#include "kernels/cuda/cudnn/operation_graph.h"

namespace mendel::cuda {
namespace {

absl::Status Check(const CudnnConvolution& conv) {
  const size_t rank = conv.x.size();
  const bool dtype =
      conv.dtype == DType::kF32 || conv.dtype == DType::kF16 || conv.dtype == DType::kBF16;
  if (!dtype)
    return Unsupported("cuDNN convolutions are f32, f16 or bf16, not ", DTypeName(conv.dtype));
  if (rank < 3 || rank > 5 || conv.w.size() != rank || conv.y.size() != rank)
    return InvalidInput("a convolution has 1 to 3 dimensions");
  for (const Ints* values : {&conv.strides, &conv.dilations, &conv.pads_begin, &conv.pads_end}) {
    if (values->size() != rank - 2)
      return InvalidInput("strides, dilations and pads must have length ", rank - 2);
  }
  for (const Shape* shape : {&conv.x, &conv.w, &conv.y}) {
    if (std::any_of(shape->begin(), shape->end(), [](int64_t extent) { return extent <= 0; }))
      return InvalidInput("an empty tensor");
  }
  const Shape& from = conv.transposed ? conv.y : conv.x;
  const Shape& to = conv.transposed ? conv.x : conv.y;
  const bool fits = from[1] % conv.w[1] == 0 && conv.w[0] == to[1] && from[0] == to[0];
  if (!fits) return InvalidInput("channels or images of a convolution do not fit");
  if (!conv.bias && (conv.residual || conv.HasActivation()))
    return InvalidInput("an epilogue needs a bias, of zeros where there is none");
  return absl::OkStatus();
}

absl::StatusOr<EngineQuery> QueryOf(const Cudnn& cudnn, const CudnnConvolution& convolution,
                                    const CudnnNumerics& numerics, const CudnnLimits& limits,
                                    const std::string& device_json) {
  MENDEL_RETURN_IF_ERROR(Check(convolution));
  MENDEL_ASSIGN_OR_RETURN(EngineQuery::Shared graph, MakeOperationGraph(cudnn, convolution));
  return EngineQuery::Make(cudnn, std::move(graph),
                           RulesOf(convolution, numerics, limits.may_compile), device_json);
}

}  // namespace

EngineRules RulesOf(const CudnnConvolution& convolution, const CudnnNumerics& numerics,
                    bool may_compile) {
  EngineRules rules = {convolution.dtype, numerics, may_compile};
  if (convolution.transposed && convolution.pads_begin != convolution.pads_end)
    rules.wrong_engines = {50};
  return rules;
}

absl::StatusOr<std::vector<CudnnEngine>> PlanConvolution(const Cudnn& cudnn,
                                                         const CudnnConvolution& convolution,
                                                         const CudnnNumerics& numerics,
                                                         const std::string& device_json,
                                                         const CudnnLimits& limits) {
  MENDEL_ASSIGN_OR_RETURN(const EngineQuery query,
                          QueryOf(cudnn, convolution, numerics, limits, device_json));
  return PlanEngines(query, limits, "this convolution");
}

absl::StatusOr<CudnnEngine> PlanConvolutionAgain(
    const Cudnn& cudnn, const CudnnConvolution& convolution, const CudnnNumerics& numerics,
    const std::string& device_json, const CudnnLimits& limits, const std::string& engine_json) {
  MENDEL_ASSIGN_OR_RETURN(const int64_t index, EngineIndexOf(engine_json));
  MENDEL_ASSIGN_OR_RETURN(
      const auto some, PlanConvolution(cudnn, convolution, numerics, device_json, {.engines = 1}));
  if (some.empty()) return Unsupported("no engine is allowed");
  MENDEL_ASSIGN_OR_RETURN(const std::string plan, WithEngine(some[0].plan_json, engine_json));
  MENDEL_ASSIGN_OR_RETURN(const EngineQuery query,
                          QueryOf(cudnn, convolution, numerics, limits, device_json));
  MENDEL_ASSIGN_OR_RETURN(CudnnEngine engine, query.PlanOf(index, plan));
  if (engine.workspace_bytes <= limits.workspace_bytes) return engine;
  return Unsupported("engine ", index, " wants ", engine.workspace_bytes,
                     " bytes of workspace, more than the limit of ", limits.workspace_bytes);
}

absl::StatusOr<std::string> DevicePropertiesOf(const Cudnn& cudnn, int ordinal) {
  Descriptor device(cudnn, cudnn::kDevice, "the device's properties");
  device.Small(cudnn::kDeviceId, ordinal);
  MENDEL_RETURN_IF_ERROR(device.Finalize());
  return TextOf(device, cudnn::kDeviceJson);
}

}  // namespace mendel::cuda
