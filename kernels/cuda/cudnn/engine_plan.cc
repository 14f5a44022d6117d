#include "kernels/cuda/cudnn/engine_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/status.h"

namespace mendel::cuda {
namespace {

using Shared = EngineQuery::Shared;

constexpr int64_t kMostConfigs = 64;

/// At most `room` values of `name`.
absl::StatusOr<std::vector<int>> Listed(const Descriptor& engine, int name, cudnn::ValueType type,
                                        int64_t room) {
  std::vector<int> values(static_cast<size_t>(room));
  MENDEL_ASSIGN_OR_RETURN(const int64_t count, engine.Get(name, type, room, values.data()));
  values.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, room)));
  return values;
}

absl::StatusOr<CudnnEngine> DescribedEngine(const Descriptor& descriptor) {
  CudnnEngine engine;
  MENDEL_RETURN_IF_ERROR(
      descriptor.Get(cudnn::kEngineIndex, cudnn::kInt64, 1, &engine.index).status());
  MENDEL_ASSIGN_OR_RETURN(engine.notes, Listed(descriptor, cudnn::kEngineNotes,
                                               cudnn::kNumericalNote, cudnn::kNoteCount));
  MENDEL_ASSIGN_OR_RETURN(
      const std::vector<int> behavior,
      Listed(descriptor, cudnn::kEngineBehavior, cudnn::kBehaviorNote, cudnn::kBehaviorCount));
  engine.compiled_at_run_time =
      std::count(behavior.begin(), behavior.end(), cudnn::kCompiledAtRunTime) > 0;
  return engine;
}

/// The description of the engine of `config` before a plan is made.
absl::StatusOr<CudnnEngine> EngineOf(const Cudnn& cudnn, const Descriptor& config) {
  Descriptor descriptor(cudnn, cudnn::kEngine, "an engine");
  MENDEL_RETURN_IF_ERROR(descriptor.status());
  void* handle = descriptor.handle();
  MENDEL_RETURN_IF_ERROR(config.Get(cudnn::kConfigEngine, cudnn::kDescriptor, 1, &handle).status());
  return DescribedEngine(descriptor);
}

bool IsAllowed(const CudnnEngine& engine, const EngineRules& rules) {
  if (engine.compiled_at_run_time && !rules.may_compile) return false;
  const bool tensor_cores =
      std::count(engine.notes.begin(), engine.notes.end(), cudnn::kTensorCores) > 0;
  const bool is_f32 = rules.dtype == DType::kF32;
  if (is_f32 && tensor_cores != rules.numerics.tf32) return false;
  return std::none_of(engine.notes.begin(), engine.notes.end(), [&](int note) {
    if (note == cudnn::kDownConverts) return is_f32;
    if (note == cudnn::kReducedSums || note == cudnn::kVaries)
      return true;  // never: plans repeat their numbers
    return note >= cudnn::kFourier && note < cudnn::kNoteCount - 1 && !rules.numerics.winograd;
  });
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
        // Proposals that fail may have been compiled, too.
        if (limits_.may_compile && ++proposals_ == kMostCompiled) return absl::OkStatus();
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
  static constexpr int64_t kMostEngines = 1024, kMostCompiled = 8;

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
  int64_t proposals_ = 0;
  absl::Status failed_;
};

}  // namespace

absl::Status EngineRules::Check(const CudnnEngine& engine) const {
  if (std::find(wrong_engines.begin(), wrong_engines.end(), engine.index) != wrong_engines.end())
    return Unsupported("engine ", engine.index, " computes this wrongly");
  if (IsAllowed(engine, *this)) return absl::OkStatus();
  return Unsupported("engine ", engine.index, " is not allowed");
}

absl::StatusOr<std::string> TextOf(const Descriptor& descriptor, int name) {
  MENDEL_ASSIGN_OR_RETURN(const int64_t size, descriptor.Get(name, cudnn::kChar, 0, nullptr));
  std::string text(static_cast<size_t>(std::max<int64_t>(0, size)), '\0');
  MENDEL_RETURN_IF_ERROR(descriptor.Get(name, cudnn::kChar, size, text.data()).status());
  return text.substr(0, text.find('\0'));
}

absl::StatusOr<EngineQuery> EngineQuery::Make(const Cudnn& cudnn, Shared graph, EngineRules rules,
                                              const std::string& device_json) {
  EngineQuery query(cudnn, std::move(graph), std::move(rules));
  query.device_ = std::make_shared<Descriptor>(cudnn, cudnn::kDevice, "the device's properties");
  query.device_->Text(cudnn::kDeviceJson, device_json);
  MENDEL_RETURN_IF_ERROR(query.device_->Finalize());
  return query;
}

absl::StatusOr<std::vector<Shared>> EngineQuery::Proposals(int mode) const {
  Descriptor heuristics(cudnn_, cudnn::kHeuristics, "the heuristics");
  heuristics.Refer(cudnn::kHeuristicGraph, {graph_});
  heuristics.Enum(cudnn::kHeuristicModeOf, cudnn::kHeuristicMode, mode);
  heuristics.Refer(cudnn::kHeuristicDevice, {device_});
  MENDEL_RETURN_IF_ERROR(heuristics.Finalize());
  std::vector<Shared> configs;
  std::vector<void*> handles;
  for (int64_t k = 0; k < kMostConfigs; ++k) {
    configs.push_back(
        std::make_shared<Descriptor>(cudnn_, cudnn::kEngineConfig, "an engine's configuration"));
    MENDEL_RETURN_IF_ERROR(configs.back()->status());
    handles.push_back(configs.back()->handle());
  }
  MENDEL_ASSIGN_OR_RETURN(
      const int64_t count,
      heuristics.Get(cudnn::kHeuristicResults, cudnn::kDescriptor, kMostConfigs, handles.data()));
  configs.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, kMostConfigs)));
  return configs;
}

absl::StatusOr<int64_t> EngineQuery::EngineCount() const {
  int64_t count = 0;
  MENDEL_RETURN_IF_ERROR(graph_->Get(cudnn::kGraphEngineCount, cudnn::kInt64, 1, &count).status());
  return count;
}

absl::StatusOr<Shared> EngineQuery::ConfigOf(int64_t index) const {
  const auto engine = std::make_shared<Descriptor>(cudnn_, cudnn::kEngine, Cat("engine ", index));
  engine->Refer(cudnn::kEngineGraph, {graph_});
  engine->Int(cudnn::kEngineIndex, index);
  engine->Refer(cudnn::kEngineDevice, {device_});
  MENDEL_RETURN_IF_ERROR(engine->Finalize());
  const auto config =
      std::make_shared<Descriptor>(cudnn_, cudnn::kEngineConfig, "an engine's configuration");
  config->Refer(cudnn::kConfigEngine, {engine});
  MENDEL_RETURN_IF_ERROR(config->Finalize());
  return config;
}

absl::StatusOr<CudnnEngine> EngineQuery::PlannedEngine(const Shared& config) const {
  MENDEL_ASSIGN_OR_RETURN(CudnnEngine engine, EngineOf(cudnn_, *config));
  MENDEL_RETURN_IF_ERROR(rules_.Check(engine));
  Descriptor plan(cudnn_, cudnn::kPlan, "the execution plan");
  plan.Refer(cudnn::kPlanConfig, {config});
  MENDEL_RETURN_IF_ERROR(Finish(plan, engine));
  return engine;
}

absl::StatusOr<CudnnEngine> EngineQuery::PlanOf(int64_t index, const std::string& plan_json) const {
  Descriptor descriptor(cudnn_, cudnn::kEngine, Cat("engine ", index));
  descriptor.Refer(cudnn::kEngineGraph, {graph_});
  descriptor.Int(cudnn::kEngineIndex, index);
  descriptor.Refer(cudnn::kEngineDevice, {device_});
  MENDEL_RETURN_IF_ERROR(descriptor.Finalize());
  MENDEL_ASSIGN_OR_RETURN(CudnnEngine engine, DescribedEngine(descriptor));
  MENDEL_RETURN_IF_ERROR(rules_.Check(engine));
  Descriptor plan(cudnn_, cudnn::kPlan, "the execution plan");
  plan.Text(cudnn::kPlanJson, plan_json);
  MENDEL_RETURN_IF_ERROR(Finish(plan, engine));
  return engine;
}

absl::Status EngineQuery::Finish(Descriptor& plan, CudnnEngine& engine) const {
  plan.Refer(cudnn::kPlanDevice, {device_});
  MENDEL_RETURN_IF_ERROR(plan.Finalize());
  MENDEL_RETURN_IF_ERROR(
      plan.Get(cudnn::kPlanWorkspace, cudnn::kInt64, 1, &engine.workspace_bytes).status());
  MENDEL_ASSIGN_OR_RETURN(engine.plan_json, TextOf(plan, cudnn::kPlanJson));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CudnnEngine>> PlanEngines(const EngineQuery& query,
                                                     const CudnnLimits& limits,
                                                     const std::string& what) {
  EngineList list(query, limits);
  MENDEL_RETURN_IF_ERROR(list.AddProposals());
  if (limits.exhaustive) MENDEL_RETURN_IF_ERROR(list.AddAll());
  MENDEL_ASSIGN_OR_RETURN(std::vector<CudnnEngine> engines, list.Take());
  if (!list.any()) return Unsupported("cuDNN has no engine for ", what, " on this device");
  return engines;
}

}  // namespace mendel::cuda
