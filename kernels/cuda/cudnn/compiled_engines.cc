#include "kernels/cuda/cudnn/compiled_engines.h"

#include <chrono>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace mendel::cuda {
namespace {

/// An engine as text: number, workspace and notes in the first line, then its plan.
std::vector<char> Written(const CudnnEngine& engine) {
  std::string text = Cat(engine.index, " ", engine.workspace_bytes, " ", engine.notes.size());
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
  head >> engine.index >> engine.workspace_bytes >> notes;
  for (int note = 0; notes > 0 && head >> note; --notes) engine.notes.push_back(note);
  if (!head || notes > 0) return std::nullopt;
  engine.plan_json = text.substr(end + 1);
  engine.compiled_at_run_time = true;
  return engine;
}

}  // namespace

absl::StatusOr<CudnnEngine> CompiledEngines::Get(const Source& source, bool offer,
                                                 const Compile& compile) {
  const ModuleSource module = {.text = Cat("cuDNN engine 1\n", source.graph),
                               .options = source.device_json,
                               .compiler = source.library,
                               .architecture = 0};
  MENDEL_ASSIGN_OR_RETURN(
      const std::vector<char> kept, cache_.Get(module, [&]() -> absl::StatusOr<std::vector<char>> {
        MENDEL_ASSIGN_OR_RETURN(const CudnnEngine engine, Compiled(offer, compile));
        return Written(engine);
      }));
  std::optional<CudnnEngine> engine = Read({kept.data(), kept.size()});
  return engine.has_value() ? *std::move(engine) : Compiled(offer, compile);
}

absl::StatusOr<CudnnEngine> CompiledEngines::Compiled(bool offer, const Compile& compile) {
  if (!offer) return compile();
  {
    const std::lock_guard lock(mutex_);
    if (seconds_left_ <= 0)
      return absl::UnavailableError(
          "the time to compile engines is spent (MENDEL_CUDA_COMPILE_SECONDS)");
  }
  const auto begin = std::chrono::steady_clock::now();
  auto engine = compile();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  const std::lock_guard lock(mutex_);
  seconds_left_ -= taken.count();
  return engine;
}

}  // namespace mendel::cuda
