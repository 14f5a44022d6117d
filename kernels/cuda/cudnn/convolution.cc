#include "kernels/cuda/cudnn/convolution.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/cudnn/descriptor.h"
#include "kernels/cuda/cudnn/engine_json.h"
#include "kernels/cuda/cudnn/engine_plan.h"

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
  if (!conv.bias && (conv.residual || conv.relu))
    return InvalidInput("an epilogue needs a bias, of zeros where there is none");
  return absl::OkStatus();
}

/// Collects engines, in the order in which they are proposed.
class EngineList {
 public:
  EngineList(const EngineQuery& query, const CudnnLimits& limits)
      : query_(query), limits_(limits) {}

  /// Adds what the heuristics propose. Both kinds may propose the same.
  absl::Status AddProposals() {
    for (const int mode : {cudnn::kModeA, cudnn::kModeFallback}) {
      const auto configs = query_.Proposals(mode);
      MENDEL_RETURN_IF_ERROR(Note(configs.status()));
      if (!configs.ok()) continue;
      for (const EngineQuery::Shared& config : *configs) {
        if (IsFull()) return absl::OkStatus();
        MENDEL_RETURN_IF_ERROR(Add(config));
      }
    }
    return absl::OkStatus();
  }

  /// Adds every engine that cuDNN has.
  absl::Status AddAll() {
    const auto count = query_.EngineCount();
    MENDEL_RETURN_IF_ERROR(Note(count.status()));
    for (int64_t index = 0; count.ok() && index < std::min(*count, kMostEngines) && !IsFull();
         ++index) {
      MENDEL_RETURN_IF_ERROR(Add(query_.ConfigOf(index)));
    }
    return absl::OkStatus();
  }

  bool any() const { return any_; }
  /// Returns the engines, or the first error where it leaves none.
  absl::StatusOr<std::vector<CudnnEngine>> Take() {
    if (engines_.empty()) MENDEL_RETURN_IF_ERROR(failed_);
    return std::move(engines_);
  }

 private:
  static constexpr int64_t kMostEngines = 1024;

  bool IsFull() const { return engines_.size() >= limits_.engines; }

  absl::Status Add(const absl::StatusOr<EngineQuery::Shared>& config) {
    MENDEL_RETURN_IF_ERROR(Note(config.status()));
    if (!config.ok()) return absl::OkStatus();
    any_ = true;
    const auto engine = query_.PlannedEngine(*config);
    MENDEL_RETURN_IF_ERROR(Note(engine.status()));
    if (!engine.ok() || engine->workspace_bytes > limits_.workspace_bytes) return absl::OkStatus();
    if (plans_.insert(engine->plan_json).second) engines_.push_back(*engine);
    return absl::OkStatus();
  }

  /// Notes an error. Only a lack of memory ends planning. Engines that cuDNN does not have, or that
  /// fail otherwise, are left out.
  absl::Status Note(const absl::Status& status) {
    if (absl::IsResourceExhausted(status)) return status;
    if (!absl::IsUnimplemented(status)) failed_.Update(status);
    return absl::OkStatus();
  }

  const EngineQuery& query_;
  const CudnnLimits& limits_;
  std::vector<CudnnEngine> engines_;
  std::set<std::string> plans_;
  bool any_ = false;
  absl::Status failed_;
};

}  // namespace

absl::StatusOr<std::vector<CudnnEngine>> PlanConvolution(const Cudnn& cudnn,
                                                         const CudnnConvolution& convolution,
                                                         const CudnnNumerics& numerics,
                                                         const std::string& device_json,
                                                         const CudnnLimits& limits) {
  MENDEL_RETURN_IF_ERROR(Check(convolution));
  MENDEL_ASSIGN_OR_RETURN(const EngineQuery query,
                          EngineQuery::Make(cudnn, convolution, numerics, device_json));
  EngineList list(query, limits);
  MENDEL_RETURN_IF_ERROR(list.AddProposals());
  if (limits.exhaustive) MENDEL_RETURN_IF_ERROR(list.AddAll());
  MENDEL_ASSIGN_OR_RETURN(std::vector<CudnnEngine> engines, list.Take());
  if (!list.any())
    return Unsupported("cuDNN ", cudnn.VersionText(),
                       " has no engine for this convolution on this device");
  return engines;
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
                          EngineQuery::Make(cudnn, convolution, numerics, device_json));
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
