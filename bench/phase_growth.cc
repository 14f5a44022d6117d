// CPU seconds of each phase by the number of nodes, on graphs that are long rather than large, and
// the exponent that fits them. Prints a Markdown table; nothing is asserted. The work of some loops
// is also counted by tests (base/work.h).
//
// usage: phase_growth [--largest NODES]
//
// The exponent is the slope of the logarithms over the sizes that take 20 ms or more. 1 is linear.

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "graph/emitter.h"
#include "graph/text.h"
#include "mutator/rule.h"
#include "onnx/export.h"
#include "onnx/import.h"
#include "optimizer/normalize.h"
#include "optimizer/stored_values.h"
#include "runtime/backend.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

constexpr int kSmallest = 1000;
constexpr double kLeastSeconds = 0.02;

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

TensorType Matrix() { return {DType::kF32, {4, 8}}; }
ValueId Weight(Emitter& e) {
  return e.Constant(Tensor::Filled({DType::kF32, {8, 8}}, 0.125F), "w");
}

Graph Chain(int nodes, bool products) {
  Emitter e("chain");
  ValueId x = e.Input("x", Matrix());
  const ValueId w = products ? Weight(e) : ValueId();
  for (int k = 0; k < nodes; ++k)
    x = products ? e.MatMul(x, w) : e.Op(k % 2 == 0 ? "Tanh" : "Relu", {x});
  e.Output("y", x);
  return *e.Finish();
}

/// y_k = y_(k-1) w + tanh(y_(k-2)).
Graph Ladder(int nodes) {
  Emitter e("ladder");
  ValueId before = e.Input("x", Matrix()), last = before;
  const ValueId w = Weight(e);
  for (int k = 0; k < nodes / 3; ++k)
    before = std::exchange(last, e.Add(e.MatMul(last, w), e.Op("Tanh", {before})));
  e.Output("y", last);
  return *e.Finish();
}

/// Many readers of one value, concatenated by eights.
Graph Star(int nodes) {
  Emitter e("star");
  const ValueId x = e.Input("x", Matrix());
  const ValueId w = Weight(e);
  for (int k = 0; k < nodes / 9; ++k) {
    std::vector<ValueId> parts;
    for (int j = 0; j < 8; ++j) parts.push_back(j == 0 ? e.MatMul(x, w) : e.Op("Tanh", {x}));
    e.Output(Cat("y", k), e.Concat(parts, 0));
  }
  return *e.Finish();
}

/// Each node of a square reads those above and to the left.
Graph Grid(int nodes) {
  Emitter e("grid");
  const int side = static_cast<int>(std::sqrt(static_cast<double>(nodes)));
  std::vector<ValueId> row(static_cast<size_t>(side), e.Input("x", Matrix()));
  for (int i = 0; i < side; ++i) {
    for (int j = 0; j < side; ++j) {
      const ValueId left = row[static_cast<size_t>(j == 0 ? 0 : j - 1)];
      row[static_cast<size_t>(j)] = e.Op("Max", {row[static_cast<size_t>(j)], left});
    }
  }
  e.Output("y", row.back());
  return *e.Finish();
}

struct Phase {
  const char* name;
  std::function<void(const Graph&)> run;
};

void Match(const Graph& graph) {
  for (const Rule* rule : AllRules()) {
    if (rule->stage != Stage::kSearch) continue;
    for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node)
      rule->match(graph, node, DefaultPredictor());
  }
}

std::string ModelPath() { return std::filesystem::temp_directory_path() / "phase_growth.onnx"; }

std::vector<Phase> Phases() {
  return {
      {"export", [](const Graph& g) { MENDEL_CHECK(ExportOnnx(g, ModelPath()).ok()); }},
      {"import", [](const Graph&) { MENDEL_CHECK(ImportOnnxFile(ModelPath()).ok()); }},
      {"literals",
       [](const Graph& g) {
         std::set<std::string> names;
         MENDEL_CHECK(WithUsefulLiterals(g, {}, names).ok());
       }},
      {"normalize",
       [](const Graph& g) {
         std::set<std::string> faults;
         MENDEL_CHECK(Normalize(g, {}, faults).ok());
       }},
      {"match", &Match},
      {"compile", [](const Graph& g) { MENDEL_CHECK(FindBackend("cpu")->Compile(g, {}).ok()); }},
      {"certify", [](const Graph& g) { MENDEL_CHECK(Certify(g, g, {}).ok()); }},
      {"plan text", [](const Graph& g) { MENDEL_CHECK(ParseGraph(PrintGraph(g)).ok()); }}};
}

/// Seconds against sizes: the slope of the logarithms; "-" with fewer than two points.
std::string Exponent(const std::vector<std::pair<double, double>>& points) {
  std::vector<std::pair<double, double>> logs;
  for (const auto& [size, seconds] : points) {
    if (seconds >= kLeastSeconds) logs.emplace_back(std::log(size), std::log(seconds));
  }
  if (logs.size() < 2) return "-";
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [a, b] : logs) x += a, y += b, xx += a * a, xy += a * b;
  const double n = static_cast<double>(logs.size());
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", (n * xy - x * y) / (n * xx - x * x));
  return text;
}

void Table(const char* name, const std::function<Graph(int)>& make, int largest) {
  std::vector<std::pair<int, Graph>> graphs;
  for (int nodes = kSmallest; nodes <= largest; nodes *= 2) graphs.emplace_back(nodes, make(nodes));
  std::printf("| %s |", name);
  for (const auto& [nodes, graph] : graphs) std::printf(" %zu |", graph.nodes().size());
  std::printf(" exponent |\n|---|");
  for (size_t k = 0; k <= graphs.size(); ++k) std::printf("---:|");
  std::printf("\n");
  const std::vector<Phase> phases = Phases();
  std::vector<std::vector<std::pair<double, double>>> points(phases.size());
  for (const auto& [nodes, graph] : graphs) {
    for (size_t p = 0; p < phases.size(); ++p) {
      const double before = CpuSeconds();
      phases[p].run(graph);
      points[p].emplace_back(static_cast<double>(graph.nodes().size()), CpuSeconds() - before);
    }
  }
  for (size_t p = 0; p < phases.size(); ++p) {
    std::printf("| %s |", phases[p].name);
    for (const auto& [size, seconds] : points[p]) std::printf(" %.3f |", seconds);
    std::printf(" %s |\n", Exponent(points[p]).c_str());
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace mendel

int main(int argc, char** argv) {
  int largest = 128000;
  if (argc == 3 && std::strcmp(argv[1], "--largest") == 0) largest = std::atoi(argv[2]);
  if (argc != 1 && argc != 3) {
    std::fprintf(stderr, "usage: phase_growth [--largest NODES]\n");
    return 2;
  }
  using mendel::Table;
  Table(
      "products", [](int nodes) { return mendel::Chain(nodes, true); }, largest);
  Table(
      "activations", [](int nodes) { return mendel::Chain(nodes, false); }, largest);
  Table("ladder", &mendel::Ladder, largest);
  Table("star", &mendel::Star, largest);
  Table("grid", &mendel::Grid, largest);
  std::filesystem::remove(mendel::ModelPath());
  return 0;
}
