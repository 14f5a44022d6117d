#include "optimizer/profiler.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "optimizer/subprogram_key.h"

namespace mendel {
namespace {

constexpr uint64_t kInputSeed = 20170317;

/// Buffers for repeated runs of one graph's executables.
class Buffers {
 public:
  explicit Buffers(const Graph& graph) : inputs_(RandomInputs(graph, kInputSeed)) {
    for (const Tensor& input : inputs_) sources_.push_back(input.bytes());
    for (const GraphOutput& output : graph.outputs())
      storage_.emplace_back(static_cast<size_t>(ByteSize(graph.type(output.value))));
    for (auto& bytes : storage_) sinks_.emplace_back(bytes);
  }
  absl::Status RunTimed(Executable& executable, std::vector<double>& seconds) {
    return executable.RunTimed(sources_, sinks_, seconds);
  }

 private:
  std::vector<Tensor> inputs_;
  std::vector<std::span<const std::byte>> sources_;
  std::vector<std::vector<std::byte>> storage_;
  std::vector<std::span<std::byte>> sinks_;
};

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Per step of each executable: the times of interleaved runs.
absl::StatusOr<std::vector<std::vector<double>>> StepMedians(const std::vector<std::unique_ptr<Executable>>& executables,
                                                             const Graph& graph, double max_seconds, int min_runs) {
  Buffers buffers(graph);
  std::vector<std::vector<std::vector<double>>> times(executables.size());
  const Deadline deadline = Deadline::After(max_seconds);
  for (int run = -1; run < 50 && (run < min_runs || !deadline.Passed()); ++run) {
    for (size_t k = 0; k < executables.size(); ++k) {
      std::vector<double> seconds;
      MENDEL_RETURN_IF_ERROR(buffers.RunTimed(*executables[k], seconds));
      times[k].resize(seconds.size());
      for (size_t step = 0; run >= 0 && step < seconds.size(); ++step) times[k][step].push_back(seconds[step]);
    }
  }
  std::vector<std::vector<double>> medians(executables.size());
  for (size_t k = 0; k < executables.size(); ++k) {
    for (auto& step : times[k]) medians[k].push_back(Median(std::move(step)));
  }
  return medians;
}

/// Seconds of the step that computes `node`; negative when no step names it.
double SecondsOf(const std::vector<Step>& steps, const std::vector<double>& seconds, int32_t node) {
  for (size_t k = 0; k < steps.size(); ++k) {
    if (std::find(steps[k].nodes.begin(), steps[k].nodes.end(), node) != steps[k].nodes.end()) return seconds[k];
  }
  return -1;
}

std::string PrintAlgorithms(const Algorithms& algorithms) {
  std::string text;
  for (const auto& [node, name] : algorithms) text += Cat(node, " ", name, "\n");
  return text;
}

absl::StatusOr<Algorithms> ParseAlgorithms(const std::string& text) {
  Algorithms algorithms;
  std::istringstream lines(text);
  int32_t node = 0;
  std::string name;
  while (lines >> node >> name) algorithms[node] = name;
  return lines.eof() ? absl::StatusOr<Algorithms>(algorithms) : absl::DataLossError("bad algorithms entry in the profile cache");
}

}  // namespace

std::string PrintTiming(const Timing& timing) {
  char buffer[160];
  std::snprintf(buffer, sizeof(buffer), "%.17g %.17g %.17g %.17g %d", timing.median_ms, timing.min_ms, timing.p90_ms, timing.spread,
                timing.runs);
  return buffer;
}

absl::StatusOr<Timing> ParseTiming(const std::string& text) {
  Timing timing;
  if (std::sscanf(text.c_str(), "%lf %lf %lf %lf %d", &timing.median_ms, &timing.min_ms, &timing.p90_ms, &timing.spread,
                  &timing.runs) != 5) {
    return absl::DataLossError("bad timing entry in the profile cache");
  }
  return timing;
}

Profiler::Profiler(const Backend& backend, ProfileCache& cache, ProfilerOptions options)
    : backend_(backend), cache_(cache), options_(options) {}

std::string Profiler::Key(const Variant& variant) const {
  return Sha256Hex(Cat(backend_.name(), "\n", backend_.Identity(), "\nthreads ", options_.threads, "\nnumerics ",
                       NumericsName(options_.numerics), "\n", SubprogramKey(variant.graph), "\n",
                       PrintAlgorithms(variant.algorithms)));
}

absl::StatusOr<std::unique_ptr<Executable>> Profiler::Compile(const Variant& variant) const {
  return backend_.Compile(variant.graph,
                          {.threads = options_.threads, .numerics = options_.numerics, .algorithms = variant.algorithms});
}

absl::StatusOr<Algorithms> Profiler::ChooseAlgorithms(const Graph& graph, double max_seconds) {
  std::map<std::string, Algorithms> by_name;  // one variant an algorithm, used wherever it can be
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    for (const std::string& name : backend_.Algorithms(graph, node, options_.numerics)) {
      if (!kept_.has_value() || kept_->count(name) > 0) by_name[name][node] = name;
    }
  }
  if (by_name.empty()) return Algorithms{};
  std::string names;
  for (const auto& [name, algorithms] : by_name) names += name + " ";
  const std::string key = Sha256Hex(Cat(names, Key({graph, {}})));
  if (const auto stored = cache_.Get("algorithms", key)) return ParseAlgorithms(*stored);
  if (options_.error_on_miss) return absl::NotFoundError("no stored measurement of the algorithms of this graph");
  std::vector<std::unique_ptr<Executable>> executables;
  MENDEL_ASSIGN_OR_RETURN(auto standard, Compile({graph, {}}));
  executables.push_back(std::move(standard));
  std::vector<const Algorithms*> variants;
  for (const auto& [name, algorithms] : by_name) {
    MENDEL_ASSIGN_OR_RETURN(auto executable, Compile({graph, algorithms}));
    executables.push_back(std::move(executable));
    variants.push_back(&algorithms);
  }
  MENDEL_ASSIGN_OR_RETURN(const auto medians, StepMedians(executables, graph, max_seconds, 5));
  measured_ += static_cast<int64_t>(executables.size());
  Algorithms best;
  std::map<int32_t, double> best_seconds;
  constexpr double kNoise = 0.97;  // an algorithm must win by more than measurements repeat
  for (size_t k = 0; k < variants.size(); ++k) {
    for (const auto& [node, name] : *variants[k]) {
      const double standard_seconds = SecondsOf(executables[0]->steps(), medians[0], node);
      const double seconds = SecondsOf(executables[k + 1]->steps(), medians[k + 1], node);
      const auto it = best_seconds.find(node);
      const double limit = it != best_seconds.end() ? it->second : kNoise * standard_seconds;
      if (seconds < 0 || standard_seconds < 0 || seconds >= limit) continue;
      best[node] = name;
      best_seconds[node] = seconds;
    }
  }
  MENDEL_RETURN_IF_ERROR(cache_.Put("algorithms", key, PrintAlgorithms(best)));
  return best;
}

Algorithms Profiler::Everywhere(const Graph& graph, const std::string& name) const {
  Algorithms algorithms;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    const std::vector<std::string> names = backend_.Algorithms(graph, node, options_.numerics);
    if (std::find(names.begin(), names.end(), name) != names.end()) algorithms[node] = name;
  }
  return algorithms;
}

absl::StatusOr<std::vector<Timing>> Profiler::Compare(const std::vector<Variant>& variants, double max_seconds) {
  std::string key;
  for (const Variant& variant : variants) key += Key(variant);
  key = Sha256Hex(key);
  if (const auto stored = cache_.Get("timing", key)) {
    std::vector<Timing> timings;
    std::istringstream lines(*stored);
    for (std::string line; std::getline(lines, line);) {
      MENDEL_ASSIGN_OR_RETURN(const Timing timing, ParseTiming(line));
      timings.push_back(timing);
    }
    if (timings.size() == variants.size()) return timings;
  }
  if (options_.error_on_miss) return absl::NotFoundError("no stored measurement of this pair of programs");
  std::vector<std::unique_ptr<Executable>> executables;
  std::vector<Executable*> pointers;
  for (const Variant& variant : variants) {
    MENDEL_ASSIGN_OR_RETURN(auto executable, Compile(variant));
    pointers.push_back(executable.get());
    executables.push_back(std::move(executable));
  }
  MeasureOptions options;
  options.min_seconds = 0.3 * max_seconds;
  options.max_seconds = max_seconds;
  options.min_runs = 7;
  options.cold = true;
  const Graph& graph = variants[0].graph;
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Timing> timings,
                          MeasureInterleaved(pointers, graph, RandomInputs(graph, kInputSeed), options));
  measured_ += static_cast<int64_t>(variants.size());
  std::string text;
  for (const Timing& timing : timings) text += PrintTiming(timing) + "\n";
  MENDEL_RETURN_IF_ERROR(cache_.Put("timing", key, text));
  return timings;
}

absl::StatusOr<std::vector<double>> Profiler::NodeSeconds(const Variant& variant) {
  const std::string key = Key(variant);
  std::vector<double> seconds(variant.graph.nodes().size(), 0);
  if (const auto stored = cache_.Get("nodes", key)) {
    std::istringstream numbers(*stored);
    for (double& value : seconds) numbers >> value;
    if (numbers) return seconds;
  }
  if (options_.error_on_miss) return absl::NotFoundError("no stored measurement of this graph's nodes");
  std::vector<std::unique_ptr<Executable>> executables;
  MENDEL_ASSIGN_OR_RETURN(auto executable, Compile(variant));
  executables.push_back(std::move(executable));
  MENDEL_ASSIGN_OR_RETURN(const auto medians, StepMedians(executables, variant.graph, 1.0, 3));
  ++measured_;
  const std::vector<Step>& steps = executables[0]->steps();
  for (size_t k = 0; k < steps.size(); ++k) {
    if (!steps[k].nodes.empty()) seconds[static_cast<size_t>(steps[k].nodes[0])] += medians[0][k];
  }
  std::ostringstream text;
  text.precision(17);
  for (double value : seconds) text << value << "\n";
  MENDEL_RETURN_IF_ERROR(cache_.Put("nodes", key, text.str()));
  return seconds;
}

}  // namespace mendel
