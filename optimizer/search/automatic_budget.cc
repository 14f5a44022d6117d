#include "optimizer/search/automatic_budget.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/status.h"
#include "graph/rewrite.h"
#include "graph/text.h"

namespace mendel {
namespace {

// Seconds: whole programs are compared several times whatever is in them.
constexpr double kOfGraph = 20;
constexpr double kOfContraction = 0.5;  // seconds: its mutants and its algorithms
constexpr double kMost = 55;            // seconds a graph, for these two
// Seconds: a search runs whole programs some thirty times, at 150 GFLOP/s.
constexpr double kOfOperation = 2e-10;
constexpr double kMostOfRuns = 120;  // seconds a graph
// Operations an output element from which on an operator counts as a contraction.
constexpr double kOperations = 8;

// Seconds of a certificate: up to a dozen draws modulo a prime, on one core with AVX2.
constexpr double kOfCertificate = 5, kOfNode = 1e-3, kOfFieldOperation = 3e-9, kOfFieldByte = 3e-8;
constexpr double kCertifyMargin = 3;

// Seconds of the numeric gate: its inputs in double by definition, on one core.
constexpr double kOfGate = 5, kOfGateNode = 1e-4, kOfGateOperation = 1e-8;
constexpr double kGateMargin = 3;

std::string Signature(const Graph& graph, const Node& node) {
  std::string signature = Cat(node.op->name, " ", PrintAttributes(node.attrs));
  for (const ValueId& input : node.inputs) signature += Cat(" ", TypeString(graph.type(input)));
  return signature;
}

double Operations(const Graph& graph, int32_t id) {
  return WithView(graph, id,
                  [&](const NodeView& view) { return CostOf(*graph.node(id).op, view).flops; });
}

bool IsContraction(const Graph& graph, int32_t id) {
  double elements = 0;
  for (const TensorType& output : graph.node(id).outputs)
    elements += static_cast<double>(NumElements(output));
  return Operations(graph, id) >= kOperations * elements;
}

}  // namespace

double AutomaticBudget(const std::vector<Graph>& graphs) {
  std::set<std::string> known;
  double seconds = 0;
  for (const Graph& graph : graphs) {
    const std::vector<bool> constant = ConstantExpressions(graph);
    const size_t before = known.size();
    double operations = 0;
    for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
      const Node& node = graph.node(id);
      if (constant[static_cast<size_t>(id)] || IsInput(node) || !IsContraction(graph, id)) continue;
      operations += Operations(graph, id);
      known.insert(Signature(graph, node));
    }
    seconds +=
        std::min(kMost, kOfGraph + kOfContraction * static_cast<double>(known.size() - before));
    seconds += std::min(kMostOfRuns, kOfOperation * operations);
  }
  return seconds;
}

double AutomaticCertifyLimit(const Graph& original, const Graph& plan) {
  double seconds = kOfCertificate;
  for (const Graph* graph : {&original, &plan}) {
    for (int32_t id = 0; id < static_cast<int32_t>(graph->nodes().size()); ++id) {
      const Cost cost = WithView(
          *graph, id, [&](const NodeView& view) { return CostOf(*graph->node(id).op, view); });
      seconds += kOfNode + cost.flops * kOfFieldOperation + cost.bytes * kOfFieldByte;
    }
  }
  return kCertifyMargin * seconds;
}

double AutomaticGateLimit(const Graph& original, size_t inputs) {
  const double of_input = kOfGateNode * static_cast<double>(original.nodes().size()) +
                          kOfGateOperation * TotalFlops(original);
  return kGateMargin * (kOfGate + static_cast<double>(inputs) * of_input);
}

}  // namespace mendel
