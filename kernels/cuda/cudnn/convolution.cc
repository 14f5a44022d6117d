#include "kernels/cuda/cudnn/convolution.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/cudnn/descriptor.h"
#include "kernels/cuda/cudnn/operation_graph.h"

namespace mendel::cuda {
namespace {

using Shared = std::shared_ptr<Descriptor>;

constexpr int64_t kMostConfigs = 64;

absl::Status Check(const CudnnConvolution& conv) {
  const size_t rank = conv.x.size();
  const bool dtype = conv.dtype == DType::kF32 || conv.dtype == DType::kF16 || conv.dtype == DType::kBF16;
  if (!dtype) return Unsupported("cuDNN convolutions are f32, f16 or bf16, not ", DTypeName(conv.dtype));
  if (rank < 3 || rank > 5 || conv.w.size() != rank || conv.y.size() != rank)
    return InvalidInput("a convolution has 1 to 3 dimensions");
  for (const Ints* values : {&conv.strides, &conv.dilations, &conv.pads_begin, &conv.pads_end}) {
    if (values->size() != rank - 2) return InvalidInput("strides, dilations and pads must have length ", rank - 2);
  }
  for (const Shape* shape : {&conv.x, &conv.w, &conv.y}) {
    if (std::any_of(shape->begin(), shape->end(), [](int64_t extent) { return extent <= 0; }))
      return InvalidInput("an empty tensor");
  }
  const Shape& from = conv.transposed ? conv.y : conv.x;
  const Shape& to = conv.transposed ? conv.x : conv.y;
  const bool fits = from[1] % conv.w[1] == 0 && conv.w[0] == to[1] && from[0] == to[0];
  if (!fits) return InvalidInput("channels or images of a convolution do not fit");
  if (!conv.bias && (conv.residual || conv.relu)) return InvalidInput("an epilogue needs a bias, of zeros where there is none");
  return absl::OkStatus();
}

/// Configurations that the heuristics propose, best first.
absl::StatusOr<std::vector<Shared>> Proposals(const Cudnn& cudnn, const Shared& graph, const Shared& device, int mode) {
  Descriptor heuristics(cudnn, cudnn::kHeuristics, "the heuristics");
  heuristics.Refer(cudnn::kHeuristicGraph, {graph});
  heuristics.Enum(cudnn::kHeuristicModeOf, cudnn::kHeuristicMode, mode);
  heuristics.Refer(cudnn::kHeuristicDevice, {device});
  MENDEL_RETURN_IF_ERROR(heuristics.Finalize());
  std::vector<Shared> configs;
  std::vector<void*> handles;
  for (int64_t k = 0; k < kMostConfigs; ++k) {
    configs.push_back(std::make_shared<Descriptor>(cudnn, cudnn::kEngineConfig, "an engine's configuration"));
    MENDEL_RETURN_IF_ERROR(configs.back()->status());
    handles.push_back(configs.back()->handle());
  }
  MENDEL_ASSIGN_OR_RETURN(const int64_t count,
                          heuristics.Get(cudnn::kHeuristicResults, cudnn::kDescriptor, kMostConfigs, handles.data()));
  configs.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, kMostConfigs)));
  return configs;
}

/// At most `room` values of `name`.
absl::StatusOr<std::vector<int>> Listed(const Descriptor& engine, int name, cudnn::ValueType type, int64_t room) {
  std::vector<int> values(static_cast<size_t>(room));
  MENDEL_ASSIGN_OR_RETURN(const int64_t count, engine.Get(name, type, room, values.data()));
  values.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, room)));
  return values;
}

/// What is known of the engine of `config` before a plan is made.
absl::StatusOr<CudnnEngine> EngineOf(const Cudnn& cudnn, const Descriptor& config) {
  Descriptor descriptor(cudnn, cudnn::kEngine, "an engine");
  MENDEL_RETURN_IF_ERROR(descriptor.status());
  void* handle = descriptor.handle();
  MENDEL_RETURN_IF_ERROR(config.Get(cudnn::kConfigEngine, cudnn::kDescriptor, 1, &handle).status());
  CudnnEngine engine;
  MENDEL_RETURN_IF_ERROR(descriptor.Get(cudnn::kEngineIndex, cudnn::kInt64, 1, &engine.index).status());
  MENDEL_ASSIGN_OR_RETURN(engine.notes, Listed(descriptor, cudnn::kEngineNotes, cudnn::kNumericalNote, cudnn::kNoteCount));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<int> behavior,
                          Listed(descriptor, cudnn::kEngineBehavior, cudnn::kBehaviorNote, cudnn::kBehaviorCount));
  engine.compiled_at_run_time = std::count(behavior.begin(), behavior.end(), cudnn::kCompiledAtRunTime) > 0;
  return engine;
}

bool Allowed(const CudnnEngine& engine, DType dtype, const CudnnNumerics& numerics) {
  if (engine.compiled_at_run_time) return false;
  const bool tensor_cores = std::count(engine.notes.begin(), engine.notes.end(), cudnn::kTensorCores) > 0;
  if (dtype == DType::kF32 && tensor_cores != numerics.tf32) return false;
  return std::none_of(engine.notes.begin(), engine.notes.end(), [&](int note) {
    if (note == cudnn::kDownConverts) return dtype == DType::kF32;
    if (note == cudnn::kReducedSums || note == cudnn::kVaries) return true;  // never: plans repeat their numbers
    return note >= cudnn::kFourier && note < cudnn::kNoteCount - 1 && !numerics.winograd;
  });
}

/// A text of unknown length, without what follows its end.
absl::StatusOr<std::string> TextOf(const Descriptor& descriptor, int name) {
  MENDEL_ASSIGN_OR_RETURN(const int64_t size, descriptor.Get(name, cudnn::kChar, 0, nullptr));
  std::string text(static_cast<size_t>(std::max<int64_t>(0, size)), '\0');
  MENDEL_RETURN_IF_ERROR(descriptor.Get(name, cudnn::kChar, size, text.data()).status());
  return text.substr(0, text.find('\0'));
}

absl::Status MakePlan(const Cudnn& cudnn, const Shared& config, const Shared& device, CudnnEngine& engine) {
  Descriptor plan(cudnn, cudnn::kPlan, "the execution plan");
  plan.Refer(cudnn::kPlanConfig, {config});
  plan.Refer(cudnn::kPlanDevice, {device});
  MENDEL_RETURN_IF_ERROR(plan.Finalize());
  MENDEL_RETURN_IF_ERROR(plan.Get(cudnn::kPlanWorkspace, cudnn::kInt64, 1, &engine.workspace_bytes).status());
  MENDEL_ASSIGN_OR_RETURN(engine.plan_json, TextOf(plan, cudnn::kPlanJson));
  return absl::OkStatus();
}

/// The engine of a proposal with its plan. Unimplemented where `numerics` forbids it, and where it is not possible here after all.
absl::StatusOr<CudnnEngine> PlannedEngine(const Cudnn& cudnn, const Shared& config, const Shared& device, DType dtype,
                                          const CudnnNumerics& numerics) {
  MENDEL_ASSIGN_OR_RETURN(CudnnEngine engine, EngineOf(cudnn, *config));
  if (!Allowed(engine, dtype, numerics)) return Unsupported("engine ", engine.index, " is not allowed");
  MENDEL_RETURN_IF_ERROR(MakePlan(cudnn, config, device, engine));
  return engine;
}

/// What ends planning: that memory ran out. What cuDNN does not have is left out, and so are its other errors, the first of which
/// becomes `failed`.
absl::Status OnlyIfExhausted(const absl::Status& status, absl::Status& failed) {
  if (absl::IsResourceExhausted(status)) return status;
  if (!absl::IsUnimplemented(status)) failed.Update(status);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<CudnnEngine>> PlanConvolution(const Cudnn& cudnn, const CudnnConvolution& convolution,
                                                         const CudnnNumerics& numerics, const std::string& device_json,
                                                         const CudnnLimits& limits) {
  MENDEL_RETURN_IF_ERROR(Check(convolution));
  const auto device = std::make_shared<Descriptor>(cudnn, cudnn::kDevice, "the device's properties");
  device->Text(cudnn::kDeviceJson, device_json);
  MENDEL_RETURN_IF_ERROR(device->Finalize());
  MENDEL_ASSIGN_OR_RETURN(const Shared graph, MakeOperationGraph(cudnn, convolution));
  std::vector<CudnnEngine> engines;
  std::set<std::string> plans;  // the two kinds of heuristics may propose the same
  bool any = false;
  absl::Status failed;  // the first error: told where it leaves no engine
  for (const int mode : {cudnn::kModeA, cudnn::kModeFallback}) {
    const auto configs = Proposals(cudnn, graph, device, mode);
    MENDEL_RETURN_IF_ERROR(OnlyIfExhausted(configs.status(), failed));
    if (!configs.ok()) continue;
    for (const Shared& config : *configs) {
      if (engines.size() >= limits.engines) return engines;
      any = true;
      const auto engine = PlannedEngine(cudnn, config, device, convolution.dtype, numerics);
      MENDEL_RETURN_IF_ERROR(OnlyIfExhausted(engine.status(), failed));
      if (!engine.ok() || engine->workspace_bytes > limits.workspace_bytes) continue;
      if (plans.insert(engine->plan_json).second) engines.push_back(*engine);
    }
  }
  if (engines.empty()) MENDEL_RETURN_IF_ERROR(failed);
  if (!any) return Unsupported("cuDNN ", cudnn.VersionText(), " has no engine for this convolution on this device");
  return engines;
}

absl::StatusOr<std::string> DevicePropertiesOf(const Cudnn& cudnn, int ordinal) {
  Descriptor device(cudnn, cudnn::kDevice, "the device's properties");
  device.Small(cudnn::kDeviceId, ordinal);
  MENDEL_RETURN_IF_ERROR(device.Finalize());
  return TextOf(device, cudnn::kDeviceJson);
}

}  // namespace mendel::cuda
