#include "bench/laboratory.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "runtime/measure.h"

namespace mendel {
namespace {

absl::StatusOr<double> QuickMilliseconds(Executable& executable, const Graph& graph) {
  Executable* const one = &executable;
  MENDEL_ASSIGN_OR_RETURN(
      const auto timings,
      MeasureInterleaved({&one, 1}, graph, RandomInputs(graph, 1),
                         {.min_seconds = 0.01, .min_runs = 3, .max_seconds = 1, .warmup = 1}));
  return timings[0].min_ms;
}

}  // namespace

std::vector<std::string> Laboratory::Algorithms(const Graph& graph) const {
  std::set<std::string> names;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    for (std::string& name : backend_.Algorithms(graph, node, numerics_)) {
      const bool last = name.find("-nhwc") != std::string::npos;
      if (last == (layout_ == kChannelsLast)) names.insert(std::move(name));
    }
  }
  std::vector<std::string> all;
  if (layout_ == kChannelsFirst) all.emplace_back();
  all.insert(all.end(), names.begin(), names.end());
  return all;
}

absl::StatusOr<std::unique_ptr<Executable>> Laboratory::Compile(const Graph& graph,
                                                                const std::string& name) const {
  CompileOptions options{.threads = threads_, .numerics = numerics_};
  for (int32_t node = 0; !name.empty() && node < static_cast<int32_t>(graph.nodes().size());
       ++node) {
    const std::vector<std::string> offered = backend_.Algorithms(graph, node, numerics_);
    if (std::find(offered.begin(), offered.end(), name) != offered.end())
      options.algorithms[node] = name;
  }
  return backend_.Compile(graph, options);
}

absl::Status Laboratory::Tune(Program& program, const std::vector<std::string>& algorithms) const {
  absl::Status refused;
  program.executable = nullptr;
  for (const std::string& name : algorithms) {
    auto executable = Compile(program.graph, name);
    const auto taken =
        executable.ok() ? QuickMilliseconds(**executable, program.graph) : executable.status();
    if (!taken.ok()) {
      if (refused.ok()) refused = taken.status();
      continue;
    }
    if (program.executable != nullptr && *taken >= program.milliseconds) continue;
    program.executable = *std::move(executable);
    program.milliseconds = *taken;
    program.algorithm = name;
  }
  return program.executable != nullptr ? absl::OkStatus() : refused;
}

absl::Status Laboratory::Compare(const std::vector<Program*>& programs) {
  std::vector<Executable*> executables;
  for (Program* program : programs) executables.push_back(program->executable.get());
  const Graph& graph = programs[0]->graph;
  MENDEL_ASSIGN_OR_RETURN(
      const auto timings,
      MeasureInterleaved(executables, graph, RandomInputs(graph, 1),
                         {.min_seconds = 0.3, .min_runs = 10, .max_seconds = 3}));
  for (size_t k = 0; k < programs.size(); ++k) programs[k]->milliseconds = timings[k].median_ms;
  return absl::OkStatus();
}

}  // namespace mendel
