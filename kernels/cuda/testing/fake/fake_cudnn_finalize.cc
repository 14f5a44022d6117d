// Finalizing a descriptor of the fake cuDNN checks its attributes and derives values from them.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/testing/fake/fake_cudnn_state.h"

namespace mendel::cuda {
namespace {

using State = FakeCudnn::State;

constexpr char kJsonBegin[] = "{\"fake\":", kJsonEngine[] = "\",\"engine\":{\"engineId\":";

std::optional<FakeTensor> TensorOf(const FakeDescriptor& descriptor) {
  const auto ids = descriptor.All<int64_t>(cudnn::kTensorId);
  const auto dtypes = descriptor.All<int>(cudnn::kTensorDataType);
  const auto is_virtual = descriptor.All<char>(cudnn::kTensorIsVirtual);
  FakeTensor tensor;
  tensor.dimensions = descriptor.All<int64_t>(cudnn::kTensorDimensions);
  tensor.strides = descriptor.All<int64_t>(cudnn::kTensorStrides);
  const bool whole = ids.size() == 1 && dtypes.size() == 1 && tensor.dimensions.size() >= 3 &&
                     tensor.dimensions.size() == tensor.strides.size() &&
                     !descriptor.All<int64_t>(cudnn::kTensorAlignment).empty();
  if (!whole) return std::nullopt;
  tensor.id = ids[0];
  tensor.dtype = dtypes[0] == cudnn::kFloat16
                     ? DType::kF16
                     : (dtypes[0] == cudnn::kBFloat16 ? DType::kBF16 : DType::kF32);
  tensor.is_virtual = !is_virtual.empty() && is_virtual[0] != 0;
  const auto is_by_value = descriptor.All<char>(cudnn::kTensorIsByValue);
  tensor.is_by_value = !is_by_value.empty() && is_by_value[0] != 0;
  return tensor;
}

/// The id of the one tensor that `name` refers to, which becomes one of `operations`; nullopt where
/// there is none.
std::optional<int64_t> TensorId(State& state, const FakeDescriptor& operation, int name,
                                FakeOperations& operations) {
  const auto tensors = state.Referred(operation, name);
  const std::optional<FakeTensor> tensor =
      tensors.size() == 1 ? TensorOf(*tensors[0]) : std::nullopt;
  if (!tensor.has_value()) return std::nullopt;
  operations.tensors[tensor->id] = *tensor;
  return tensor->id;
}

std::optional<FakeOperation> PointwiseOf(State& state, const FakeDescriptor& operation,
                                         FakeOperations& operations) {
  const auto functions = state.Referred(operation, cudnn::kOperationPointwise);
  const auto x = TensorId(state, operation, cudnn::kOperationX, operations);
  const auto y = TensorId(state, operation, cudnn::kOperationY, operations);
  if (functions.size() != 1 || !x.has_value() || !y.has_value()) return std::nullopt;
  const auto mode = functions[0]->All<int>(cudnn::kPointwiseModeOf);
  const std::pair<int, FakeKind> activations[] = {
      {cudnn::kRelu, FakeKind::kRelu},        {cudnn::kExp, FakeKind::kExp},
      {cudnn::kLog, FakeKind::kLog},          {cudnn::kSigmoid, FakeKind::kSigmoid},
      {cudnn::kSwish, FakeKind::kSwish},      {cudnn::kGelu, FakeKind::kGelu},
      {cudnn::kGeluTanh, FakeKind::kGeluTanh}};
  for (const auto& [number, kind] : activations) {
    if (mode == std::vector<int>{number}) return FakeOperation{kind, *x, 0, *y};
  }
  const auto other = TensorId(state, operation, cudnn::kOperationB, operations);
  if (!other.has_value()) return std::nullopt;
  const std::pair<int, FakeKind> functions_of_two[] = {{cudnn::kAdd, FakeKind::kAdd},
                                                       {cudnn::kMultiply, FakeKind::kMul},
                                                       {cudnn::kDivide, FakeKind::kDiv},
                                                       {cudnn::kSubtract, FakeKind::kSub}};
  for (const auto& [number, kind] : functions_of_two) {
    if (mode == std::vector<int>{number}) return FakeOperation{kind, *x, *other, *y};
  }
  return std::nullopt;
}

std::optional<FakeOperation> ConvolutionOf(State& state, const FakeDescriptor& operation,
                                           FakeOperations& operations) {
  const bool forward = operation.type == cudnn::kConvolutionForward;
  const auto geometry =
      state.Referred(operation, forward ? cudnn::kForwardConvolution : cudnn::kBackwardConvolution);
  const auto x =
      TensorId(state, operation, forward ? cudnn::kForwardX : cudnn::kBackwardDy, operations);
  const auto w =
      TensorId(state, operation, forward ? cudnn::kForwardW : cudnn::kBackwardW, operations);
  const auto y =
      TensorId(state, operation, forward ? cudnn::kForwardY : cudnn::kBackwardDx, operations);
  if (geometry.size() != 1 || !x.has_value() || !w.has_value() || !y.has_value())
    return std::nullopt;
  const FakeDescriptor& it = *geometry[0];
  FakeOperation made{forward ? FakeKind::kConvolution : FakeKind::kBackwardData, *x, *w, *y};
  made.strides = it.All<int64_t>(cudnn::kConvolutionStrides);
  made.dilations = it.All<int64_t>(cudnn::kConvolutionDilations);
  made.pads_begin = it.All<int64_t>(cudnn::kConvolutionPrePads);
  made.pads_end = it.All<int64_t>(cudnn::kConvolutionPostPads);
  const size_t spatial = operations.tensors.at(*x).dimensions.size() - 2;
  const bool whole =
      made.strides.size() == spatial && made.dilations.size() == spatial &&
      made.pads_begin.size() == spatial && made.pads_end.size() == spatial &&
      it.All<int64_t>(cudnn::kConvolutionDimensions) == Ints{static_cast<int64_t>(spatial)};
  if (!whole) return std::nullopt;
  return made;
}

std::optional<FakeOperation> ProductOf(State& state, const FakeDescriptor& operation,
                                       FakeOperations& operations) {
  const auto a = TensorId(state, operation, cudnn::kMatmulA, operations);
  const auto b = TensorId(state, operation, cudnn::kMatmulB, operations);
  const auto c = TensorId(state, operation, cudnn::kMatmulC, operations);
  const bool whole = state.Referred(operation, cudnn::kMatmulOf).size() == 1 && a.has_value() &&
                     b.has_value() && c.has_value();
  return whole ? std::optional(FakeOperation{FakeKind::kMatMul, *a, *b, *c}) : std::nullopt;
}

std::optional<FakeOperation> ReductionOf(State& state, const FakeDescriptor& operation,
                                         FakeOperations& operations) {
  const auto functions = state.Referred(operation, cudnn::kReductionOf);
  const auto x = TensorId(state, operation, cudnn::kReductionX, operations);
  const auto y = TensorId(state, operation, cudnn::kReductionY, operations);
  if (functions.size() != 1 || !x.has_value() || !y.has_value()) return std::nullopt;
  const auto reduction = functions[0]->All<int>(cudnn::kReductionOperatorOf);
  if (reduction.size() != 1) return std::nullopt;
  return FakeOperation{
      reduction[0] == cudnn::kMaximumOver ? FakeKind::kMaxOver : FakeKind::kSumOver, *x, 0, *y};
}

std::optional<FakeOperation> OperationOf(State& state, const FakeDescriptor& operation,
                                         FakeOperations& operations) {
  switch (operation.type) {
    case cudnn::kPointwiseOperation:
      return PointwiseOf(state, operation, operations);
    case cudnn::kMatmulOperation:
      return ProductOf(state, operation, operations);
    case cudnn::kReductionOperation:
      return ReductionOf(state, operation, operations);
    default:
      return ConvolutionOf(state, operation, operations);
  }
}

int FinalizeGraph(State& state, FakeDescriptor& graph) {
  FakeOperations operations;
  for (const FakeDescriptor* operation : state.Referred(graph, cudnn::kGraphOperations)) {
    const auto made = OperationOf(state, *operation, operations);
    if (!made.has_value()) return state.Refuse(kFakeBadParam, "an operation lacks something");
    operations.operations.push_back(*made);
  }
  if (operations.operations.empty())
    return state.Refuse(kFakeBadParam, "a graph without operations");
  graph.operations = std::make_shared<FakeOperations>(std::move(operations));
  return 0;
}

/// True if no engine computes the operations, which begin with a product. Like cuDNN's, engines
/// want two products, sums that are stored, rows of multiples of 8 that lie side by side, and no
/// element twice.
bool HasNoAttention(const FakeOperations& operations) {
  const FakeOperation &first = operations.operations[0], &last = operations.operations.back();
  const FakeTensor& q = operations.tensors.at(first.x);
  const bool stores_sums = std::any_of(
      operations.operations.begin(), operations.operations.end() - 1, [&](const FakeOperation& it) {
        return it.kind == FakeKind::kAdd && !operations.tensors.at(it.y).is_virtual;
      });
  if (last.kind != FakeKind::kMatMul || &first == &last || !stores_sums) return true;
  const auto is_refused = [&](int64_t id, size_t along) {
    const FakeTensor& it = operations.tensors.at(id);
    return it.dtype != q.dtype || it.dimensions.size() != 4 || it.dimensions[along] % 8 != 0 ||
           it.strides[along] != 1 || it.dimensions[0] != q.dimensions[0] ||
           it.dimensions[1] != q.dimensions[1] ||
           std::count(it.strides.begin(), it.strides.end(), 0) > 0;
  };
  return q.dtype == DType::kF32 || is_refused(first.x, 3) || is_refused(first.other, 2) ||
         is_refused(last.other, 3) || is_refused(last.y, 3);
}

/// True if FakeCudnn's header excludes engines for the operations.
bool HasNoEngine(const FakeOperations& operations) {
  const FakeOperation& first = operations.operations[0];
  const FakeTensor& x = operations.tensors.at(first.x);
  const FakeTensor& w = operations.tensors.at(first.other);
  if (first.kind == FakeKind::kMatMul) return HasNoAttention(operations);
  const bool several_dtypes =
      std::any_of(operations.tensors.begin(), operations.tensors.end(), [&](const auto& tensor) {
        return !tensor.second.is_virtual && tensor.second.dtype != x.dtype;
      });
  if (several_dtypes) return true;
  if (operations.NeedFusion()) return x.strides[1] != 1 && x.dimensions[1] != 1;
  const bool depthwise = w.dimensions[1] == 1 && x.dimensions[1] > 1;
  return depthwise && std::any_of(operations.operations.begin() + 1, operations.operations.end(),
                                  [&](const FakeOperation& it) {
                                    return it.kind == FakeKind::kAdd &&
                                           operations.tensors.at(it.other).dimensions ==
                                               operations.tensors.at(it.y).dimensions;
                                  });
}

int FinalizeHeuristics(State& state, FakeDescriptor& heuristics) {
  const auto graphs = state.Referred(heuristics, cudnn::kHeuristicGraph);
  const auto devices = state.Referred(heuristics, cudnn::kHeuristicDevice);
  if (graphs.size() != 1 || devices.size() != 1)
    return state.Refuse(kFakeNotFinalized, "heuristics lack a graph or a device");
  if (HasNoEngine(*graphs[0]->operations)) return state.Refuse(kFakeNoSuchPattern, "no engine");
  heuristics.operations = graphs[0]->operations;
  return 0;
}

int FinalizeEngine(State& state, FakeDescriptor& engine) {
  const auto graphs = state.Referred(engine, cudnn::kEngineGraph);
  const auto index = engine.All<int64_t>(cudnn::kEngineIndex);
  if (graphs.size() != 1 || index.size() != 1 ||
      state.Referred(engine, cudnn::kEngineDevice).size() != 1)
    return state.Refuse(kFakeNotFinalized, "an engine lacks a graph, a number or a device");
  if (index[0] < 0 || index[0] >= static_cast<int64_t>(FakeEngines().size()))
    return state.Refuse(kFakeBadParam, "no such engine");
  const FakeEngine& wanted = FakeEngines()[static_cast<size_t>(index[0])];
  const FakeOperations& operations = *graphs[0]->operations;
  if (HasNoEngine(operations) || (operations.NeedFusion() && !wanted.compiled_at_run_time))
    return state.Refuse(kFakeNoSuchPattern, "no engine");
  engine.engine = static_cast<int>(index[0]);
  engine.operations = graphs[0]->operations;
  return 0;
}

int FinalizeConfig(State& state, FakeDescriptor& config) {
  const auto engines = state.Referred(config, cudnn::kConfigEngine);
  if (engines.size() != 1)
    return state.Refuse(kFakeNotFinalized, "a configuration lacks its engine");
  config.engine = engines[0]->engine;
  config.operations = engines[0]->operations;
  return 0;
}

/// Sets a text as cuDNN returns it: with a zero behind it.
void SetText(FakeDescriptor& descriptor, int name, const std::string& text) {
  FakeDescriptor::Value& value = descriptor.values[name];
  value.bytes.resize(text.size() + 1);
  std::memcpy(value.bytes.data(), text.c_str(), value.bytes.size());
}

int FinalizePlan(State& state, FakeDescriptor& plan) {
  if (state.Referred(plan, cudnn::kPlanDevice).size() != 1)
    return state.Refuse(kFakeNotFinalized, "a plan lacks its device");
  const auto text = plan.All<char>(cudnn::kPlanJson);
  if (text.empty()) {
    const auto configs = state.Referred(plan, cudnn::kPlanConfig);
    if (configs.size() != 1)
      return state.Refuse(kFakeNotFinalized, "a plan lacks its configuration");
    plan.engine = configs[0]->engine;
    plan.operations = configs[0]->operations;
    if (!FakeEngines()[static_cast<size_t>(plan.engine)].is_possible)
      return state.Refuse(kFakeNotSupported, "not possible");
    const std::string json =
        Cat(kJsonBegin, state.version, ",\"operations\":\"", plan.operations->Print(), kJsonEngine,
            plan.engine, ",\"knobChoices\":{}}}");
    SetText(plan, cudnn::kPlanJson, json);
    return 0;
  }
  const std::string json(text.begin(), text.end());
  int version = 0, at = 0;
  const int read = std::sscanf(json.c_str(), "{\"fake\":%d,\"operations\":\"%n", &version, &at);
  const size_t engine = json.find(kJsonEngine);
  const bool has_engine =
      engine != std::string::npos &&
      std::sscanf(json.c_str() + engine + std::strlen(kJsonEngine), "%d", &plan.engine) == 1;
  if (read != 1 || at == 0 || !has_engine || plan.engine < 0 ||
      plan.engine >= static_cast<int>(FakeEngines().size()))
    return state.Refuse(kFakeBadParam, "not the text of a plan");
  if (version != state.version)
    return state.Refuse(kFakeSerializationVersion, "the plan of another version");
  const auto operations =
      FakeOperations::Parse(json.substr(static_cast<size_t>(at), engine - static_cast<size_t>(at)));
  if (!operations.ok())
    return state.Refuse(kFakeBadParam, std::string(operations.status().message()));
  plan.operations = std::make_shared<FakeOperations>(*operations);
  return 0;
}

int FinalizeDevice(State& state, FakeDescriptor& device) {
  if (!device.All<char>(cudnn::kDeviceJson).empty()) return 0;
  if (device.All<int32_t>(cudnn::kDeviceId) != std::vector<int32_t>{0})
    return state.Refuse(kFakeBadParam, "no such device");
  SetText(device, cudnn::kDeviceJson, "{\"deviceName\":\"fake\"}");
  return 0;
}

int FinalizePack(State& state, const FakeDescriptor& pack) {
  const auto ids = pack.All<int64_t>(cudnn::kPackIds);
  const bool whole = !ids.empty() && ids.size() == pack.All<void*>(cudnn::kPackPointers).size() &&
                     pack.All<void*>(cudnn::kPackWorkspace).size() == 1;
  return whole ? 0 : state.Refuse(kFakeBadParam, "a variant pack lacks something");
}

}  // namespace

const std::vector<FakeEngine>& FakeEngines() {
  static const auto* engines = new std::vector<FakeEngine>{
      {},
      {{cudnn::kTensorCores}},
      {{cudnn::kWinograd}, false, true, 4096},
      {{}, false, false},
      {{}, false, true, 1000},
      {{cudnn::kVaries}},
      {{}, true},
      {{}, false, true, int64_t{1} << 30},
      {{cudnn::kTensorCores, cudnn::kWinograd}},
      {{cudnn::kTensorCores, cudnn::kDownConverts}},
      {{cudnn::kTensorCores}, false, true, 512},
      {{}, false, true, 2000},
      {{cudnn::kTensorCores}, true, true, 256},
  };
  return *engines;
}

int FinalizeFake(State& state, FakeDescriptor& descriptor) {
  switch (descriptor.type) {
    case cudnn::kTensor:
      return TensorOf(descriptor).has_value()
                 ? 0
                 : state.Refuse(kFakeBadParam, "a tensor lacks something");
    case cudnn::kGraph:
      return FinalizeGraph(state, descriptor);
    case cudnn::kHeuristics:
      return FinalizeHeuristics(state, descriptor);
    case cudnn::kEngine:
      return FinalizeEngine(state, descriptor);
    case cudnn::kEngineConfig:
      return FinalizeConfig(state, descriptor);
    case cudnn::kPlan:
      return FinalizePlan(state, descriptor);
    case cudnn::kDevice:
      return FinalizeDevice(state, descriptor);
    case cudnn::kVariantPack:
      return FinalizePack(state, descriptor);
    default:
      return 0;
  }
}

}  // namespace mendel::cuda
