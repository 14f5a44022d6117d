// Growth of the search's time with a network of repeated parts, of different parts, and with the
// layers of an encoder. Prints a Markdown table; nothing is asserted. CPU seconds are those of the
// whole process, as a clock for machines that are not quiet.
//
// usage: growth [--search beam|egraph] [--budget SECONDS] [--threads N] [--largest BLOCKS] [--width
//               WIDTH] [--pretend]
//        growth MODEL.onnx...
//   --pretend: nothing is timed, operators cost an estimate from arithmetic and traffic; the
//   rest is the search's own work.
//   MODEL.onnx: how long rules take to find their matches in the normalized model. Calls below 1 ms
//   count in the sum only: most find nothing, or what they derived before.

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/deadline.h"
#include "base/parallel.h"
#include "bench/growth_graphs.h"
#include "graph/rewrite.h"
#include "onnx/import.h"
#include "optimizer/normalize.h"
#include "optimizer/pipeline.h"
#include "optimizer/search/matches.h"

namespace mendel {
namespace {

struct Settings {
  SearchOptions search;
  int threads = 1;
  int largest = 64;
  int64_t width = 128;
  bool pretend = false;
  std::vector<std::string> models;
};

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

std::vector<double> Roofline(const Graph& graph, const CompileOptions&) {
  std::vector<double> seconds(graph.nodes().size(), 0);
  const std::vector<bool> constant = ConstantExpressions(graph);
  for (size_t id = 0; id < seconds.size(); ++id) {
    if (constant[id] || IsInput(graph.nodes()[id]) || graph.nodes()[id].op->is_view) continue;
    const Cost cost = WithView(graph, static_cast<int32_t>(id), [&](const NodeView& view) {
      return CostOf(*graph.nodes()[id].op, view);
    });
    seconds[id] = 1e-6 + cost.flops / 5e10 + cost.bytes / 1e10;
  }
  return seconds;
}

/// Places where rules match, and how many of them are different.
std::pair<size_t, size_t> Places(const Graph& graph) {
  std::set<std::string> different;
  size_t all = 0;
  for (const Rule* rule : RulesOfSearch({}, false)) {
    for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
      for (const Match& match : rule->match(graph, node, DefaultPredictor())) {
        const auto key = MatchKey(graph, *rule, match);
        if (!key.ok()) continue;
        ++all;
        different.insert(*key);
      }
    }
  }
  return {all, different.size()};
}

void Row(const Graph& graph, const Settings& settings) {
  OptimizeOptions options;
  options.search = settings.search;
  options.threads = settings.threads;
  if (settings.pretend) options.costs = &Roofline;
  const auto cache = ProfileCache::Open(":memory:");
  MENDEL_CHECK(cache.ok());
  const double cpu = CpuSeconds();
  const Stopwatch clock;
  const auto result = Optimize(graph, options, **cache);
  if (!result.ok()) std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  MENDEL_CHECK(result.ok());
  const double all_cpu = CpuSeconds() - cpu;
  double search = 0, certify = 0;
  for (const auto& [phase, seconds] : result->phases) {
    if (phase == "search") search = seconds;
    if (phase == "certify") certify = seconds;
  }
  const auto [places, different] = Places(result->plan.baseline);
  const plan::SearchCounters& counters = result->search.counters;
  std::printf(
      "| %s | %zu | %zu | %zu | %.3f | %.2f | %.2f | %.2f | %.2f | %lld | %lld | %lld | %.2f | %s "
      "|\n",
      graph.name().c_str(), graph.nodes().size(), places, different,
      result->search.matching_seconds, search, certify, clock.Seconds(), all_cpu,
      static_cast<long long>(counters.proposed()), static_cast<long long>(counters.measured()),
      static_cast<long long>(counters.chosen()),
      result->search.baseline_time.median_ms / std::max(1e-9, result->search.best_time.median_ms),
      counters.stop_reason().c_str());
  std::fflush(stdout);
}

void ModelRow(const std::string& path) {
  const auto model = ImportOnnxFile(path);
  if (!model.ok()) std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
  MENDEL_CHECK(model.ok());
  std::set<std::string> faults;
  const auto graph = Normalize(model->graph, {}, faults, Deadline::Never());
  MENDEL_CHECK(graph.ok());
  double sum = 0;
  size_t matches = 0;
  std::vector<std::pair<double, std::string>> calls;
  for (const Rule* rule : RulesOfSearch({}, false)) {
    for (int32_t node = 0; node < static_cast<int32_t>(graph->nodes().size()); ++node) {
      const Stopwatch clock;
      matches += rule->match(*graph, node, DefaultPredictor()).size();
      const double seconds = clock.Seconds();
      sum += seconds;
      if (seconds >= 1e-3) calls.emplace_back(seconds, rule->name);
    }
  }
  std::sort(calls.begin(), calls.end());
  const auto at = [&](double share) {
    if (calls.empty()) return std::pair(0.0, std::string("-"));
    return calls[static_cast<size_t>(share * static_cast<double>(calls.size() - 1))];
  };
  std::printf("| %s | %zu | %zu | %.2f | %zu | %.0f | %.0f | %s |\n",
              std::filesystem::path(path).stem().c_str(), graph->nodes().size(), matches, sum,
              calls.size(), 1e3 * at(0.95).first, 1e3 * at(1).first, at(1).second.c_str());
  std::fflush(stdout);
}

Settings Parse(int argc, char** argv) {
  Settings settings;
  for (int k = 1; k < argc; ++k) {
    const std::string option = argv[k];
    if (!option.starts_with("-")) {
      settings.models.push_back(option);
      continue;
    }
    const char* value = k + 1 < argc ? argv[k + 1] : "";
    if (option == "--pretend") {
      settings.pretend = true;
      continue;
    }
    ++k;
    if (option == "--search") {
      settings.search.method =
          std::strcmp(value, "egraph") == 0 ? SearchMethod::kEGraph : SearchMethod::kBeam;
    } else if (option == "--budget") {
      settings.search.budget_seconds = std::atof(value);
    } else if (option == "--threads") {
      settings.threads = std::atoi(value);
    } else if (option == "--largest") {
      settings.largest = std::atoi(value);
    } else if (option == "--width") {
      settings.width = std::atoll(value);
    } else {
      std::fprintf(stderr, "unknown option %s\n", option.c_str());
      std::exit(2);
    }
  }
  return settings;
}

void Main(const Settings& settings) {
  SetParallelism(settings.threads);
  if (!settings.models.empty()) {
    std::printf(
        "| model | nodes | matches | matching s | calls of 1 ms | 95th percentile ms | "
        "longest ms | of rule |\n|---|---:|---:|---:|---:|---:|---:|---|\n");
    for (const std::string& path : settings.models) ModelRow(path);
    return;
  }
  std::printf("Search %s, budget %g s, %d threads%s.\n\n",
              std::string(SearchMethodName(settings.search.method)).c_str(),
              settings.search.budget_seconds, settings.threads,
              settings.pretend ? ", nothing timed" : "");
  std::printf(
      "| network | nodes | places | different places | matching s | search s | certify s | all s | "
      "all CPU s | "
      "proposed | measured | chosen | "
      "speed-up | stopped "
      "|\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n");
  for (int blocks = 1; blocks <= settings.largest; blocks *= 2)
    Row(RepeatedBlocks(blocks), settings);
  for (int blocks = 1; blocks <= settings.largest; blocks *= 2)
    Row(DifferentBlocks(blocks), settings);
  for (const int layers : {6, 12, 24}) {
    if (layers <= settings.largest) Row(BertLike(layers, settings.width), settings);
  }
}

}  // namespace
}  // namespace mendel

int main(int argc, char** argv) {
  mendel::Main(mendel::Parse(argc, argv));
  return 0;
}
