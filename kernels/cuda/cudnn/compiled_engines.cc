#include "kernels/cuda/cudnn/compiled_engines.h"

#include <chrono>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/status.h"

namespace mendel::cuda {
namespace {

/// An engine as text: number, workspace, how it is made and its notes in the first line, then its
/// plan.
std::vector<char> Written(const CudnnEngine& engine) {
  std::string text = Cat(engine.index, " ", engine.workspace_bytes, " ",
                         engine.compiled_at_run_time ? 1 : 0, " ", engine.notes.size());
  for (const int note : engine.notes) text += Cat(" ", note);
  text += Cat("\n", engine.plan_json);
  return {text.begin(), text.end()};
}

std::optional<CudnnEngine> Read(std::string_view text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  std::istringstream head{std::string(text.substr(0, end))};
  CudnnEngine engine;
  size_t notes = 0;
  head >> engine.index >> engine.workspace_bytes >> engine.compiled_at_run_time >> notes;
  for (int note = 0; notes > 0 && head >> note; --notes) engine.notes.push_back(note);
  if (!head || notes > 0) return std::nullopt;
  engine.plan_json = text.substr(end + 1);
  return engine;
}

std::string RulesText(const EngineRules& rules) {
  std::string text = Cat(DTypeName(rules.dtype), rules.numerics.tf32 ? " tf32" : "",
                         rules.numerics.winograd ? " winograd" : "", " without");
  for (const int64_t engine : rules.wrong_engines) text += Cat(" ", engine);
  return text + "\n";
}

}  // namespace

absl::StatusOr<CudnnEngine> CompiledEngines::Get(const Source& source, bool offer,
                                                 const Compile& compile) {
  // Another number means other operation graphs of the same text, other rules than EngineRules has,
  // or another form of the file.
  const ModuleSource module = {
      .text = Cat("cuDNN engine 2\n", RulesText(source.rules), source.graph),
      .options = source.device_json,
      .compiler = source.library,
      .architecture = 0};
  const std::string key = module.Key();
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
  }
  auto engine = Kept(module, source.rules, offer, compile);
  const absl::Status status = engine.status();
  if (absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) return engine;
  const std::lock_guard lock(mutex_);
  return known_.try_emplace(key, std::move(engine)).first->second;
}

absl::StatusOr<CudnnEngine> CompiledEngines::Kept(const ModuleSource& module,
                                                  const EngineRules& rules, bool offer,
                                                  const Compile& compile) {
  MENDEL_ASSIGN_OR_RETURN(
      const std::vector<char> kept, cache_.Get(module, [&]() -> absl::StatusOr<std::vector<char>> {
        MENDEL_ASSIGN_OR_RETURN(const CudnnEngine engine, Compiled(offer, compile));
        return Written(engine);
      }));
  std::optional<CudnnEngine> engine = Read({kept.data(), kept.size()});
  if (engine.has_value() && rules.Check(*engine).ok()) return *std::move(engine);
  return Compiled(offer, compile);  // another program has written it
}

absl::StatusOr<CudnnEngine> CompiledEngines::Compiled(bool offer, const Compile& compile) {
  if (offer) {
    const std::lock_guard lock(mutex_);
    if (seconds_left_ <= 0)
      return absl::UnavailableError(
          "the time to compile engines is spent (MENDEL_CUDA_COMPILE_SECONDS)");
  }
  const auto begin = std::chrono::steady_clock::now();
  auto engines = compile();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  if (offer) {
    const std::lock_guard lock(mutex_);
    seconds_left_ -= taken.count();
  }
  MENDEL_RETURN_IF_ERROR(engines.status());
  if (engines->empty()) return Unsupported("no engine of cuDNN's is allowed");
  return std::move((*engines)[0]);
}

}  // namespace mendel::cuda
