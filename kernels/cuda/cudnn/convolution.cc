#include "kernels/cuda/cudnn/convolution.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/cudnn/descriptor.h"

namespace mendel::cuda {
namespace {

using Shared = std::shared_ptr<Descriptor>;

constexpr int64_t kAlignment = 16;
constexpr int64_t kMostConfigs = 64;

int DataType(DType dtype) {
  return dtype == DType::kF16 ? cudnn::kFloat16 : (dtype == DType::kBF16 ? cudnn::kBFloat16 : cudnn::kFloat32);
}

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
  const bool fits = conv.x[1] % conv.w[1] == 0 && conv.w[0] == conv.y[1] && conv.x[0] == conv.y[0];
  if (!fits) return InvalidInput("channels or images of a convolution do not fit");
  if (!conv.bias && (conv.residual || conv.relu)) return InvalidInput("an epilogue needs a bias, of zeros where there is none");
  return absl::OkStatus();
}

class GraphMaker {
 public:
  GraphMaker(const Cudnn& cudnn, const CudnnConvolution& conv) : cudnn_(cudnn), conv_(conv) {
    left_ = 1 + (conv.residual ? 1 : 0) + (conv.bias ? 1 : 0) + (conv.relu ? 1 : 0);
  }

  absl::StatusOr<Shared> Make() {
    const Shared x = Tensor("x", conv_.x), w = Tensor("w", conv_.w);
    AddConvolution(x, w);
    if (conv_.residual) AddPointwise(cudnn::kAdd, Tensor("residual", conv_.y));
    Shape channels(conv_.y.size(), 1);
    channels[1] = conv_.y[1];
    if (conv_.bias) AddPointwise(cudnn::kAdd, Tensor("bias", channels));
    if (conv_.relu) AddPointwise(cudnn::kRelu, nullptr);
    const Shared graph = New(cudnn::kGraph, "the graph");
    graph->Refer(cudnn::kGraphOperations, operations_);
    MENDEL_RETURN_IF_ERROR(graph->Finalize());
    return graph;
  }

 private:
  Shared New(cudnn::Type type, const char* what) const { return std::make_shared<Descriptor>(cudnn_, type, what); }

  Ints StridesOf(const Shape& shape) const {
    Ints strides(shape.size());
    int64_t step = 1;
    const auto next = [&](size_t d) { strides[d] = std::exchange(step, step * shape[d]); };
    if (conv_.channels_last) next(1);
    for (size_t d = shape.size(); d-- > 2;) next(d);
    if (!conv_.channels_last) next(1);
    next(0);
    return strides;
  }

  Shared Tensor(const char* what, const Shape& shape, bool is_virtual = false) {
    const Shared tensor = New(cudnn::kTensor, what);
    tensor->Int(cudnn::kTensorId, ++ids_);
    // What is never stored keeps the precision of the sums.
    tensor->Enum(cudnn::kTensorDataType, cudnn::kDataType, is_virtual ? cudnn::kFloat32 : DataType(conv_.dtype));
    tensor->Ints(cudnn::kTensorDimensions, shape);
    tensor->Ints(cudnn::kTensorStrides, StridesOf(shape));
    tensor->Int(cudnn::kTensorAlignment, kAlignment);
    tensor->Flag(cudnn::kTensorIsVirtual, is_virtual);
    (void)tensor->Finalize();  // sticks, and is told by who refers to it
    return tensor;
  }
  Shared NextResult() {
    --left_;
    return result_ = Tensor("y", conv_.y, left_ > 0);
  }

  void AddConvolution(const Shared& x, const Shared& w) {
    const Shared convolution = New(cudnn::kConvolution, "the convolution");
    convolution->Enum(cudnn::kConvolutionPrecision, cudnn::kDataType, cudnn::kFloat32);
    convolution->Enum(cudnn::kConvolutionModeOf, cudnn::kConvolutionMode, cudnn::kCrossCorrelation);
    convolution->Ints(cudnn::kConvolutionDilations, conv_.dilations);
    convolution->Ints(cudnn::kConvolutionStrides, conv_.strides);
    convolution->Ints(cudnn::kConvolutionPrePads, conv_.pads_begin);
    convolution->Ints(cudnn::kConvolutionPostPads, conv_.pads_end);
    convolution->Int(cudnn::kConvolutionDimensions, static_cast<int64_t>(conv_.strides.size()));
    (void)convolution->Finalize();
    const Shared operation = New(cudnn::kConvolutionForward, "the operation");
    operation->Refer(cudnn::kForwardConvolution, {convolution});
    operation->Refer(cudnn::kForwardX, {x});
    operation->Refer(cudnn::kForwardW, {w});
    operation->Refer(cudnn::kForwardY, {NextResult()});
    operation->Number(cudnn::kForwardAlpha, 1);
    operation->Number(cudnn::kForwardBeta, 0);
    (void)operation->Finalize();
    operations_.push_back(operation);
  }

  void AddPointwise(int mode, const Shared& other) {
    const Shared pointwise = New(cudnn::kPointwise, "the pointwise function");
    pointwise->Enum(cudnn::kPointwiseModeOf, cudnn::kPointwiseMode, mode);
    pointwise->Enum(cudnn::kPointwisePrecision, cudnn::kDataType, cudnn::kFloat32);
    (void)pointwise->Finalize();
    const Shared operation = New(cudnn::kPointwiseOperation, "the pointwise operation");
    operation->Refer(cudnn::kOperationPointwise, {pointwise});
    operation->Refer(cudnn::kOperationX, {result_});
    if (other != nullptr) operation->Refer(cudnn::kOperationB, {other});
    operation->Refer(cudnn::kOperationY, {NextResult()});
    (void)operation->Finalize();
    operations_.push_back(operation);
  }

  const Cudnn& cudnn_;
  const CudnnConvolution& conv_;
  int left_ = 0;  // results to come
  int64_t ids_ = 0;
  Shared result_;
  std::vector<Shared> operations_;
};

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

absl::StatusOr<std::vector<int>> NotesOf(const Cudnn& cudnn, const Descriptor& config) {
  Descriptor engine(cudnn, cudnn::kEngine, "an engine");
  MENDEL_RETURN_IF_ERROR(engine.status());
  void* handle = engine.handle();
  MENDEL_RETURN_IF_ERROR(config.Get(cudnn::kConfigEngine, cudnn::kDescriptor, 1, &handle).status());
  std::vector<int> notes(cudnn::kNoteCount);
  MENDEL_ASSIGN_OR_RETURN(const int64_t count,
                          engine.Get(cudnn::kEngineNotes, cudnn::kNumericalNote, cudnn::kNoteCount, notes.data()));
  notes.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, cudnn::kNoteCount)));
  return notes;
}

bool Allowed(const std::vector<int>& notes, DType dtype, const CudnnNumerics& numerics) {
  return std::none_of(notes.begin(), notes.end(), [&](int note) {
    const bool converts = note == cudnn::kTensorCores || note == cudnn::kDownConverts;
    if (converts) return dtype == DType::kF32 && !numerics.tensor_cores;
    if (note == cudnn::kReducedSums || note == cudnn::kVaries) return true;  // never: plans repeat their numbers
    return note >= cudnn::kFourier && note < cudnn::kNoteCount - 1 && !numerics.winograd;
  });
}

absl::StatusOr<CudnnEngine> Planned(const Cudnn& cudnn, const Shared& config, const Shared& device, std::vector<int> notes) {
  Descriptor plan(cudnn, cudnn::kPlan, "the execution plan");
  plan.Refer(cudnn::kPlanConfig, {config});
  plan.Refer(cudnn::kPlanDevice, {device});
  MENDEL_RETURN_IF_ERROR(plan.Finalize());
  CudnnEngine engine{"", 0, std::move(notes)};
  MENDEL_RETURN_IF_ERROR(plan.Get(cudnn::kPlanWorkspace, cudnn::kInt64, 1, &engine.workspace_bytes).status());
  MENDEL_ASSIGN_OR_RETURN(const int64_t size, plan.Get(cudnn::kPlanJson, cudnn::kChar, 0, nullptr));
  std::string json(static_cast<size_t>(std::max<int64_t>(0, size)), '\0');
  MENDEL_RETURN_IF_ERROR(plan.Get(cudnn::kPlanJson, cudnn::kChar, size, json.data()).status());
  engine.plan_json = json.substr(0, json.find('\0'));
  return engine;
}

}  // namespace

absl::StatusOr<std::vector<CudnnEngine>> PlanConvolution(const Cudnn& cudnn, const CudnnConvolution& convolution,
                                                         const CudnnNumerics& numerics, const GpuModel& gpu, size_t max_engines) {
  MENDEL_RETURN_IF_ERROR(Check(convolution));
  const auto device = std::make_shared<Descriptor>(cudnn, cudnn::kDevice, "the device's properties");
  device->Text(cudnn::kDeviceJson, DevicePropertiesJson(gpu));
  MENDEL_RETURN_IF_ERROR(device->Finalize());
  MENDEL_ASSIGN_OR_RETURN(const Shared graph, GraphMaker(cudnn, convolution).Make());
  std::vector<CudnnEngine> engines;
  bool any = false;
  for (const int mode : {cudnn::kModeA, cudnn::kModeFallback}) {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<Shared> configs, Proposals(cudnn, graph, device, mode));
    for (const Shared& config : configs) {
      if (engines.size() >= max_engines) return engines;
      any = true;
      MENDEL_ASSIGN_OR_RETURN(std::vector<int> notes, NotesOf(cudnn, *config));
      if (!Allowed(notes, convolution.dtype, numerics)) continue;
      auto engine = Planned(cudnn, config, device, std::move(notes));
      if (absl::IsUnimplemented(engine.status())) continue;  // proposed, and not possible here after all
      if (!engine.ok()) return engine.status();
      engines.push_back(*std::move(engine));
    }
  }
  if (!any) return Unsupported("cuDNN ", cudnn.version, " has no engine for this convolution on sm_", gpu.compute_capability);
  return engines;
}

}  // namespace mendel::cuda
