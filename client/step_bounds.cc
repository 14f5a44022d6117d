#include "client/step_bounds.h"

#include <algorithm>
#include <set>

namespace mendel {
namespace {

double BytesOf(const Graph& graph, const ValueId& value) {
  return static_cast<double>(ByteSize(graph.type(value)));
}

/// Bytes that enter and leave a set of nodes, each value once.
double BytesAround(const Graph& graph, const std::set<int32_t>& nodes) {
  std::set<ValueId> values;
  for (const int32_t node : nodes) {
    for (const ValueId& input : graph.node(node).inputs)
      if (!nodes.contains(input.node)) values.insert(input);
    for (const int32_t user : graph.users(node)) {
      if (nodes.contains(user)) continue;
      for (const ValueId& input : graph.node(user).inputs)
        if (input.node == node) values.insert(input);
    }
  }
  for (const GraphOutput& output : graph.outputs())
    if (nodes.contains(output.value.node)) values.insert(output.value);
  double bytes = 0;
  for (const ValueId& value : values) bytes += BytesOf(graph, value);
  return bytes;
}

}  // namespace

std::vector<StepBound> BoundsOf(const Graph& graph, std::span<const Step> steps,
                                const DeviceRates& rates, int threads) {
  std::vector<StepBound> bounds;
  for (const Step& step : steps) {
    StepBound& bound = bounds.emplace_back();
    if (step.nodes.empty()) continue;
    double flops = 0;
    for (const int32_t node : step.nodes) {
      flops += WithView(graph, node, [&](const NodeView& view) {
                 return CostOf(*graph.node(node).op, view);
               }).flops;
    }
    const double arithmetic = flops / (rates.flops * std::max(1, threads));
    const double memory = BytesAround(graph, {step.nodes.begin(), step.nodes.end()}) / rates.bytes;
    bound.seconds = std::max(arithmetic, memory) + rates.operator_seconds;
    bound.limit = arithmetic > memory ? "arithmetic" : "memory";
  }
  return bounds;
}

}  // namespace mendel
