#include "mutator/region.h"

#include <algorithm>
#include <functional>
#include <set>

#include "graph/op_helpers.h"
#include "mutator/conv_chain.h"
#include "mutator/parallel.h"

namespace mendel {
namespace {

using Nodes = std::set<int32_t, std::greater<>>;

bool ReadOutside(const Graph& graph, int32_t node, const Nodes& region) {
  const std::vector<int32_t>& users = graph.users(node);
  return graph.IsOutput(node) || std::any_of(users.begin(), users.end(), [&](int32_t user) { return region.count(user) == 0; });
}

/// Nodes above every window node of the region only rearranged would gain nothing: they are left outside.
std::vector<int32_t> WithoutIdleInputs(const Graph& graph, const Nodes& region) {
  std::vector<int32_t> kept;
  std::set<int32_t> behind;
  for (auto id = region.rbegin(); id != region.rend(); ++id) {
    const std::vector<ValueId>& inputs = graph.node(*id).inputs;
    const bool moved = std::any_of(inputs.begin(), inputs.end(), [&](ValueId v) { return behind.count(v.node) > 0; });
    if (!moved && !IsWindowNode(graph, *id)) continue;
    behind.insert(*id);
    kept.push_back(*id);
  }
  return kept;
}

/// The region with at most `max_windows` window nodes, grown from its end against the edges; highest node first, so that all
/// readers of a node are decided before it.
Nodes Grow(const Graph& graph, int32_t last, int max_windows) {
  Nodes region, frontier = {last};
  int windows = 0;
  while (!frontier.empty()) {
    const int32_t id = *frontier.begin();
    frontier.erase(frontier.begin());
    if (id != last && ReadOutside(graph, id, region)) continue;
    const bool window = IsWindowNode(graph, id);
    if (window ? windows == max_windows : !RidesAlong(graph, id)) continue;
    if (window) ++windows;
    region.insert(id);
    for (ValueId value : graph.node(id).inputs) {
      if (!IsInput(graph.node(value.node)) && !IsWeight(graph, value)) frontier.insert(value.node);
    }
  }
  return region;
}

}  // namespace

bool IsWindowNode(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  if (node.outputs.size() != 1 || node.inputs.empty() || IsWeight(graph, node.inputs[0])) return false;
  if (node.op->name == "Conv") {
    return std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](ValueId v) { return IsWeight(graph, v); });
  }
  return (node.op->name == "MaxPool" || node.op->name == "AveragePool") && node.attrs.Int("ceil_mode") == 0;
}

bool RidesAlong(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  if (node.outputs.size() != 1) return false;
  const Shape& shape = node.outputs[0].shape;
  const bool concat = node.op->name == "Concat" && node.attrs.Int("axis") == 1;
  if ((!concat && node.op->restrict != &RestrictElementwise) || shape.size() < 3) return false;
  int operands = 0;
  for (ValueId value : node.inputs) {
    const Shape& operand = graph.type(value).shape;
    if (IsWeight(graph, value)) {
      if (concat || !IsUniformOverBatchAndSpace(operand, shape.size())) return false;
    } else {
      if (!concat && operand != shape) return false;
      ++operands;
    }
  }
  return operands > 0;
}

std::vector<Window> WindowsOfNode(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  const Shape& x = graph.type(node.inputs[0]).shape;
  Shape kernel;
  if (node.op->name == "Conv") {
    const Shape& w = graph.type(node.inputs[1]).shape;
    kernel.assign(w.begin() + 2, w.end());
  } else {
    kernel = node.attrs.IntList("kernel_shape");
  }
  return WindowsOf(Shape(x.begin() + 2, x.end()), kernel, node.attrs);
}

std::vector<std::vector<int32_t>> RegionsEndingAt(const Graph& graph, int32_t node, int max_windows) {
  std::vector<std::vector<int32_t>> regions;
  if (!IsWindowNode(graph, node) && !RidesAlong(graph, node)) return regions;
  const std::vector<int32_t>& users = graph.users(node);
  if (users.size() == 1 && !graph.IsOutput(node) && IsPointwise(graph, users[0])) return regions;
  for (int windows = 1; windows <= max_windows; windows *= 2) {
    std::vector<int32_t> region = WithoutIdleInputs(graph, Grow(graph, node, windows));
    if (region.empty() || region.back() != node) break;
    if (regions.empty() || regions.back() != region) regions.push_back(std::move(region));
  }
  return regions;
}

}  // namespace mendel
