// Every contraction of a model under every algorithm that the CPU backend offers for it, timed
// inside the whole program, in one process, interleaved with the library's default. Prints a
// Markdown table: milliseconds of the fastest of the runs (other work on the machine only ever
// adds), nominal GFLOP/s of the best, how many times faster it is than the default, and the least
// time that the best algorithm could take (bench/roofline.h) in percent of it: what bounds it is
// its arithmetic or the memory that contains its weights. Nothing is asserted.
//
// usage: layers [--threads N] [--rounds N] [--numerics CLASS] [--steps] MODEL.onnx

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/expect.h"
#include "bench/machine_peak.h"
#include "bench/roofline.h"
#include "graph/text.h"
#include "onnx/import.h"
#include "runtime/backend.h"
#include "runtime/measure.h"
#include "runtime/numerics.h"

namespace mendel {
namespace {

/// One compilation and the smallest seconds of its steps.
struct Variant {
  std::unique_ptr<Executable> executable;
  std::vector<double> seconds;
  std::map<int32_t, std::string> algorithms;

  /// Nodes of the step that computes `node`.
  std::vector<int32_t> NodesWith(int32_t node) const {
    for (const Step& step : executable->steps()) {
      if (std::find(step.nodes.begin(), step.nodes.end(), node) != step.nodes.end())
        return step.nodes;
    }
    return {};
  }

  double Seconds(const std::set<int32_t>& nodes) const {
    return SecondsOfNodes(executable->steps(), seconds, nodes);
  }
};

void Measure(const Graph& graph, std::map<std::string, Variant>& variants, int rounds) {
  const std::vector<Tensor> inputs = RandomInputs(graph, 1);
  std::vector<std::span<const std::byte>> sources;
  for (const Tensor& input : inputs) sources.push_back(input.bytes());
  std::vector<std::vector<std::byte>> storage;
  for (const GraphOutput& output : graph.outputs())
    storage.emplace_back(static_cast<size_t>(ByteSize(graph.type(output.value))));
  std::vector<std::span<std::byte>> sinks(storage.begin(), storage.end());
  for (int round = 0; round <= rounds; ++round) {
    for (auto& [name, variant] : variants) {
      std::vector<double> seconds;
      if (!variant.executable->RunTimed(sources, sinks, seconds).ok()) std::exit(1);
      if (round == 0) continue;
      if (variant.seconds.empty()) variant.seconds = seconds;
      for (size_t k = 0; k < seconds.size(); ++k)
        variant.seconds[k] = std::min(variant.seconds[k], seconds[k]);
    }
  }
}

struct Machine {
  MachinePeak core;
  int threads = 1;
};

struct Totals {
  double before = 0, after = 0, bound = 0;
  std::map<int32_t, std::string> each, own;  ///< the best algorithms; the best own ones
};

void Row(const Graph& graph, int32_t node, const std::map<std::string, Variant>& variants,
         const Machine& machine, Totals& totals) {
  const double flops = WithView(
      graph, node, [&](const NodeView& view) { return CostOf(*graph.node(node).op, view).flops; });
  // A step may compute more or fewer nodes than the default's: all that any of them computes with
  // this node counts.
  std::set<int32_t> nodes = {node};
  for (const auto& [name, variant] : variants) {
    const auto used = variant.algorithms.find(node);
    if (!name.empty() && (used == variant.algorithms.end() || used->second != name)) continue;
    for (const int32_t with : variant.NodesWith(node)) nodes.insert(with);
  }
  const double standard = variants.at("").Seconds(nodes);
  double best = standard, best_own = std::numeric_limits<double>::infinity();
  std::string times, winner = "default";
  for (const auto& [name, variant] : variants) {
    const auto used = variant.algorithms.find(node);
    if (used == variant.algorithms.end() || used->second != name) continue;
    const double seconds = variant.Seconds(nodes);
    times += Cat(times.empty() ? "" : ", ", name, " ", std::to_string(1e3 * seconds).substr(0, 6));
    if (seconds < best) best = seconds, winner = name;
    if (seconds < best_own && name.find("-own") != std::string::npos)
      best_own = seconds, totals.own[node] = name;
  }
  if (times.empty()) return;
  totals.before += standard;
  totals.after += best;
  if (winner != "default") totals.each[node] = winner;
  const Roofline roofline = RooflineOf(graph, node, winner, machine.core, machine.threads);
  totals.bound += roofline.Seconds();
  std::printf("| %s | %s -> %s | %.3f | %s | %s | %.0f | %.2f | %.0f by %s |\n",
              graph.node(node).name.c_str(),
              TypeString(graph.type(graph.node(node).inputs[0])).c_str(),
              TypeString(graph.node(node).outputs[0]).c_str(), 1e3 * standard, times.c_str(),
              winner.c_str(), flops / best * 1e-9, standard / best, 100 * roofline.Seconds() / best,
              roofline.memory_seconds > roofline.arithmetic_seconds ? "weights" : "arithmetic");
}

void CompileAndMeasure(const Backend& backend, const Graph& graph, int threads, int rounds,
                       Numerics numerics, std::map<std::string, Variant>& variants) {
  for (auto& [name, variant] : variants) {
    CompileOptions options;
    options.threads = threads;
    options.numerics = numerics;
    options.algorithms = variant.algorithms;
    variant.executable = Expect(backend.Compile(graph, options));
  }
  Measure(graph, variants, rounds);
}

void Run(const std::string& path, int threads, int rounds, Numerics numerics, bool steps) {
  const Graph graph = Expect(ImportOnnxFile(path)).graph;
  const Backend& backend = *FindBackend("cpu");
  std::map<std::string, Variant> variants;
  variants[""];
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    for (const std::string& name : backend.Algorithms(graph, node, numerics))
      variants[name].algorithms[node] = name;
  }
  CompileAndMeasure(backend, graph, threads, rounds, numerics, variants);
  std::printf("%s, %d thread(s), smallest of %d\n", backend.Identity().c_str(), threads, rounds);
  const Machine machine{MeasureMachinePeak(), threads};
  std::printf("one core: %.0f GFLOP/s, %.1f GB/s from memory\n\n", machine.core.flops * 1e-9,
              machine.core.bytes * 1e-9);
  std::printf(
      "| node | shapes | default ms | others ms | best | GFLOP/s | speed-up | %% of its bound "
      "|\n|---|---|---|---|---|---|---|---|\n");
  Totals totals;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node)
    Row(graph, node, variants, machine, totals);
  std::printf("\nSum: default %.3f ms, best %.3f ms, bounds of the best %.3f ms\n",
              1e3 * totals.before, 1e3 * totals.after, 1e3 * totals.bound);
  variants.clear();
  variants["default"];
  variants["the best of each"].algorithms = totals.each;
  variants["own ones throughout"].algorithms = totals.own;
  CompileAndMeasure(backend, graph, threads, rounds, numerics, variants);
  for (const auto& [name, variant] : variants) {
    std::printf("Whole program, steps' sum: %s %.3f ms\n", name.c_str(),
                1e3 * std::accumulate(variant.seconds.begin(), variant.seconds.end(), 0.0));
    if (!steps) continue;
    for (size_t k = 0; k < variant.seconds.size(); ++k) {
      const Step& step = variant.executable->steps()[k];
      std::printf("    %.3f %s [%s]\n", 1e3 * variant.seconds[k], step.name.c_str(),
                  step.kernel.c_str());
    }
  }
}

}  // namespace
}  // namespace mendel

int main(int argc, char** argv) {
  int threads = 1, rounds = 20;
  mendel::Numerics numerics = mendel::Numerics::kDefault;
  bool steps = false;
  std::string path;
  for (int k = 1; k < argc; ++k) {
    const bool has_value = k + 1 < argc;
    if (std::strcmp(argv[k], "--threads") == 0 && has_value) {
      threads = std::atoi(argv[++k]);
    } else if (std::strcmp(argv[k], "--rounds") == 0 && has_value) {
      rounds = std::atoi(argv[++k]);
    } else if (std::strcmp(argv[k], "--numerics") == 0 && has_value) {
      numerics = mendel::Expect(mendel::ParseNumerics(argv[++k]));
    } else if (std::strcmp(argv[k], "--steps") == 0) {
      steps = true;
    } else {
      path = argv[k];
    }
  }
  if (path.empty()) {
    std::fprintf(
        stderr,
        "usage: layers [--threads N] [--rounds N] [--numerics CLASS] [--steps] MODEL.onnx\n");
    return 2;
  }
  mendel::Run(path, threads, rounds, numerics, steps);
  return 0;
}
