#include "client/onnxruntime/part_runner.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "client/onnxruntime/programs.h"
#include "client/onnxruntime/trial.h"
#include "onnx/interface.h"

namespace mendel::ort {
namespace {

/// Idle threads of ONNX Runtime spin for less than this.
constexpr auto kPause = std::chrono::milliseconds(60);

constexpr char kPlan[] = ".plan";      // a plan of Mendel's
constexpr char kNative[] = ".native";  // an empty file: ONNX Runtime's nodes are faster

bool SizesAreKnown(const ModelInterface& interface) {
  for (const DeclaredValue& input : interface.inputs)
    for (const DeclaredDimension& dim : input.shape)
      if (dim.size < 0 || !input.has_shape) return false;
  return true;
}

/// Buffers for the outputs that are selected in `plan`; other shapes get none.
class Outputs {
 public:
  static absl::StatusOr<Outputs> Of(const mendel_plan* plan) {
    Outputs outputs;
    for (int k = 0; k < mendel_output_count(plan); ++k) {
      mendel_value value = {};
      MENDEL_RETURN_IF_ERROR(Checked(mendel_output(plan, k, &value)));
      outputs.shapes_.emplace_back(value.shape, value.shape + value.rank);
      outputs.buffers_.emplace_back(value.bytes);
    }
    return outputs;
  }
  size_t count() const { return buffers_.size(); }
  MakeOutput Make() {
    return [this](int index, std::span<const int64_t> shape) -> void* {
      const size_t k = static_cast<size_t>(index);
      return std::ranges::equal(shapes_[k], shape) ? buffers_[k].data() : nullptr;
    };
  }

 private:
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<std::vector<std::byte>> buffers_;
};

}  // namespace

PartRunner::PartRunner(const RuntimeApi& api, ContextBlob blob, Settings settings, LogLine log)
    : api_(api),
      blob_(std::move(blob)),
      model_hash_(Sha256Hex(blob_.model)),
      settings_(std::move(settings)),
      log_(std::move(log)),
      threads_(settings_.threads),
      stop_(mendel_stop_new()) {}

PartRunner::~PartRunner() {
  mendel_stop_request(stop_);
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (searcher_.joinable()) searcher_.join();
  mendel_free(plan_);
  mendel_stop_free(stop_);
}

absl::Status PartRunner::Open(const std::function<int()>& count_threads) {
  if (threads_ == 0) threads_ = count_threads();
  const mendel_model model = ModelOf(blob_.model);
  const mendel_load_options options = {sizeof(mendel_load_options), threads_, nullptr};
  MENDEL_RETURN_IF_ERROR(Checked(mendel_open_model(&model, &options, nullptr, &plan_)));
  for (const std::string& plan : blob_.plans) {
    const auto program = ReadProgramBytes(plan);
    const absl::Status adopted = program.ok() ? Adopt(program->get()) : program.status();
    if (!adopted.ok())  // the plan is of another machine, for one; the model is there
      log_(Cat("a plan of the EPContext model is not used: ", std::string(adopted.message())));
  }
  if (settings_.budget_s <= 0 && settings_.cache_dir.empty()) blob_ = {};
  return absl::OkStatus();
}

absl::Status PartRunner::Adopt(const mendel_program* program) {
  return Checked(mendel_adopt(plan_, program));
}

absl::Status PartRunner::Select(const PartInputs& inputs) {
  return Checked(
      mendel_select_inputs(plan_, inputs.ranks.data(), inputs.shapes.data(), inputs.data.data()));
}

absl::Status PartRunner::Run(const PartInputs& inputs, const std::function<int()>& count_threads,
                             const MakeOutput& make_output) {
  Lock lock(mutex_);
  const bool keeps = settings_.budget_s > 0 || !settings_.cache_dir.empty();
  const std::string shapes = keeps ? ShapesText(inputs) : "";
  auto native = to_native_.find(shapes);
  if (native == to_native_.end()) {
    if (plan_ == nullptr) MENDEL_RETURN_IF_ERROR(Open(count_threads));
    if (keeps) MENDEL_RETURN_IF_ERROR(Improve(lock, shapes, inputs));
    native = to_native_.find(shapes);
  }
  if (native != to_native_.end()) return native_->Run(inputs, native->second, make_output);
  return RunPlan(inputs, make_output);
}

absl::Status PartRunner::RunPlan(const PartInputs& inputs, const MakeOutput& make_output) {
  MENDEL_RETURN_IF_ERROR(Select(inputs));
  const int count = mendel_output_count(plan_);
  std::vector<void*> outputs(static_cast<size_t>(count));
  for (int k = 0; k < count; ++k) {
    mendel_value value = {};
    MENDEL_RETURN_IF_ERROR(Checked(mendel_output(plan_, k, &value)));
    void*& output = outputs[static_cast<size_t>(k)];
    output = make_output(k, std::span(value.shape, static_cast<size_t>(value.rank)));
    if (output == nullptr && value.bytes > 0)
      return absl::InternalError(Cat("ONNX Runtime makes no buffer for output ", k));
  }
  return Checked(mendel_run_shapes(plan_, inputs.ranks.data(), inputs.shapes.data(),
                                   inputs.data.data(), outputs.data()));
}

std::string PartRunner::CachePath(const std::string& shapes) const {
  if (settings_.cache_dir.empty()) return "";
  const std::string key =
      Sha256Hex(Cat(model_hash_, " ", shapes, " ", threads_, " ", mendel_version()));
  return Cat(settings_.cache_dir, "/", key);
}

absl::Status PartRunner::Improve(Lock& lock, const std::string& shapes, const PartInputs& inputs) {
  if (!seen_.insert(shapes).second) return absl::OkStatus();
  MENDEL_RETURN_IF_ERROR(Select(inputs));
  if (TakeCached(shapes, static_cast<size_t>(mendel_output_count(plan_)))) return absl::OkStatus();
  if (settings_.budget_s <= 0) return absl::OkStatus();
  if (!settings_.background) return Search(lock, shapes, inputs);
  waiting_.push_back({shapes, KeptInputs(inputs)});
  if (!searcher_.joinable()) searcher_ = std::thread([this] { SearchLoop(); });
  changed_.notify_all();
  return absl::OkStatus();
}

bool PartRunner::TakeCached(const std::string& shapes, size_t outputs) {
  const std::string cached = CachePath(shapes);
  if (cached.empty()) return false;
  if (settings_.compare && std::filesystem::exists(cached + kNative)) {
    const absl::Status made = MakeNative();
    if (made.ok()) LeaveToNative(shapes, outputs);
    return made.ok();
  }
  if (!std::filesystem::exists(cached + kPlan)) return false;
  const auto program = ReadProgram(cached + kPlan);
  const absl::Status adopted = program.ok() ? Adopt(program->get()) : program.status();
  if (adopted.ok()) return true;
  log_(Cat(cached, kPlan, " is not used and will be replaced: ", std::string(adopted.message())));
  return false;
}

absl::Status PartRunner::Search(Lock& lock, const std::string& shapes, const PartInputs& inputs) {
  const auto program = Optimize(blob_.model, shapes, settings_.budget_s, threads_, stop_);
  if (absl::IsCancelled(program.status())) return absl::OkStatus();
  if (!program.ok()) {
    log_(Cat("no plan was searched for ", shapes, ": ", std::string(program.status().message())));
    return absl::OkStatus();
  }
  return Choose(lock, program->get(), shapes, inputs);
}

void PartRunner::SearchLoop() {
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
    if (closing_) return;
    const Request request = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    const auto program = Optimize(blob_.model, request.shapes, settings_.budget_s, threads_, stop_);
    lock.lock();
    if (closing_) return;  // what a stopped search found is not kept
    const absl::Status chosen =
        program.ok() ? Choose(lock, program->get(), request.shapes, request.inputs.inputs())
                     : program.status();
    if (closing_) return;
    if (!chosen.ok())
      log_(Cat("the search for ", request.shapes, " failed: ", std::string(chosen.message())));
  }
}

absl::Status PartRunner::Choose(Lock& lock, const mendel_program* program,
                                const std::string& shapes, const PartInputs& inputs) {
  MENDEL_RETURN_IF_ERROR(Adopt(program));
  bool native = false;
  if (settings_.compare) {
    const auto faster = NativeIsFaster(lock, shapes, inputs);
    if (absl::IsCancelled(faster.status())) return absl::OkStatus();
    if (!faster.ok()) {
      log_(Cat("the plan for ", shapes, " is used but not compared with ONNX Runtime's nodes: ",
               std::string(faster.status().message())));
    }
    native = faster.ok() && *faster;
  }
  const std::string cached = CachePath(shapes);
  if (cached.empty()) return absl::OkStatus();
  absl::Status stored;
  if (!native) {
    stored = Store(program, cached + kPlan);
  } else if (!std::ofstream(cached + kNative)) {
    stored = InvalidInput("cannot write ", cached, kNative);
  }
  if (!stored.ok()) log_(Cat("the plan is not kept: ", std::string(stored.message())));
  return absl::OkStatus();
}

absl::Status PartRunner::MakeNative() {
  if (native_ != nullptr) return absl::OkStatus();
  MENDEL_ASSIGN_OR_RETURN(native_,
                          NativeSession::Make(api_, blob_.model, threads_, settings_.pool_spins));
  return absl::OkStatus();
}

void PartRunner::LeaveToNative(const std::string& shapes, size_t outputs) {
  to_native_[shapes] = outputs;
  if (seen_.size() > 1) return;
  // No other shapes have a plan: its memory is free until some do.
  mendel_free(plan_);
  plan_ = nullptr;
}

absl::StatusOr<bool> PartRunner::NativeIsFaster(Lock& lock, const std::string& shapes,
                                                const PartInputs& inputs) {
  MENDEL_RETURN_IF_ERROR(MakeNative());
  MENDEL_RETURN_IF_ERROR(Select(inputs));
  MENDEL_ASSIGN_OR_RETURN(Outputs outputs, Outputs::Of(plan_));
  const MakeOutput make_output = outputs.Make();
  const auto times = TimeInTurns([&] { return RunPlan(inputs, make_output); },
                                 [&] { return native_->Run(inputs, outputs.count(), make_output); },
                                 [&] {
                                   lock.unlock();  // runs of the session go on
                                   std::this_thread::sleep_for(kPause);
                                   lock.lock();
                                   return closing_ ? absl::CancelledError("the session is closing")
                                                   : absl::OkStatus();
                                 });
  const bool native = times.ok() && times->second_ms < times->first_ms;
  if (native) {
    log_(Cat("ONNX Runtime's own nodes run a part for ", shapes, ": they take ", times->second_ms,
             " ms, Mendel's plan ", times->first_ms, " ms (option 'compare')"));
    LeaveToNative(shapes, outputs.count());
  } else if (to_native_.empty()) {
    native_.reset();
  }
  MENDEL_RETURN_IF_ERROR(times.status());
  return native;
}

absl::StatusOr<ContextBlob> PartRunner::Compiled() {
  ContextBlob blob = blob_;
  if (settings_.budget_s <= 0) return blob;
  MENDEL_ASSIGN_OR_RETURN(const ModelInterface interface, ParseInterface(blob.model));
  if (!SizesAreKnown(interface)) return blob;
  MENDEL_ASSIGN_OR_RETURN(const Program program, Optimize(blob.model, "", settings_.budget_s,
                                                          threads_ == 0 ? 1 : threads_, stop_));
  MENDEL_ASSIGN_OR_RETURN(std::string plan, PlanBytes(program.get()));
  blob.plans.push_back(std::move(plan));
  return blob;
}

}  // namespace mendel::ort
