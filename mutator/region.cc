#include "mutator/region.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/work.h"
#include "graph/op_helpers.h"
#include "mutator/conv_chain.h"
#include "mutator/parallel.h"

namespace mendel {
namespace {

using Nodes = std::set<int32_t, std::greater<>>;

/// Nodes of a region, and nodes looked at for one.
constexpr size_t kMaxNodes = 256, kMaxVisited = 4096;

bool ReadOutside(const Graph& graph, int32_t node, const Nodes& region) {
  const std::vector<int32_t>& users = graph.users(node);
  return graph.IsOutput(node) || std::any_of(users.begin(), users.end(),
                                             [&](int32_t user) { return region.count(user) == 0; });
}

/// Nodes above every window node of the region only rearranged would gain nothing: they are left
/// outside.
std::vector<int32_t> WithoutIdleInputs(const Graph& graph, const Nodes& region) {
  std::vector<int32_t> kept;
  std::set<int32_t> behind;
  for (auto id = region.rbegin(); id != region.rend(); ++id) {
    const std::vector<ValueId>& inputs = graph.node(*id).inputs;
    const bool moved = std::any_of(inputs.begin(), inputs.end(),
                                   [&](ValueId v) { return behind.count(v.node) > 0; });
    if (!moved && !IsWindowNode(graph, *id)) continue;
    behind.insert(*id);
    kept.push_back(*id);
  }
  return kept;
}

/// Read behind `last` by an operator that a region may hold: then one that ends further on does.
bool ReadFurtherOn(const Graph& graph, int32_t node, int32_t last) {
  const std::vector<int32_t>& users = graph.users(node);
  return std::any_of(users.begin(), users.end(), [&](int32_t user) {
    return user > last && (IsWindowNode(graph, user) || RidesAlong(graph, user));
  });
}

/// The region with at most `max_windows` window nodes (empty where that takes too many steps),
/// grown from its end against the edges; highest node first, so that all readers of a node are
/// decided before it. `several`: its values may be read outside, too.
Nodes Grow(const Graph& graph, int32_t last, int max_windows, bool several) {
  Nodes region, frontier = {last},
                outside;  // outside: what the region reads, and what that depends on
  int windows = 0;
  size_t visited = 0;
  while (!frontier.empty()) {
    const int32_t id =
        outside.empty() ? *frontier.begin() : std::max(*frontier.begin(), *outside.begin());
    CountWork();
    if (++visited > kMaxVisited) return {};
    const bool wanted = frontier.erase(id) > 0 && outside.erase(id) == 0;
    const bool window = IsWindowNode(graph, id);
    const bool kept =
        id == last || (region.size() < kMaxNodes && !(several ? ReadFurtherOn(graph, id, last)
                                                              : ReadOutside(graph, id, region)));
    if (wanted && kept && (window ? windows < max_windows : RidesAlong(graph, id))) {
      if (window) ++windows;
      region.insert(id);
      for (ValueId value : graph.node(id).inputs) {
        if (!IsInput(graph.node(value.node)) && !IsWeight(graph, value))
          frontier.insert(value.node);
      }
    } else if (several) {  // no path may leave the region and come back
      outside.erase(id);
      for (ValueId value : graph.node(id).inputs) outside.insert(value.node);
    }
  }
  return region;
}

/// `region` with the operators before its last that read it alone, as far as there are no more than
/// `max_windows` window nodes.
std::vector<int32_t> WithReaders(const Graph& graph, const std::vector<int32_t>& region,
                                 int max_windows) {
  std::set<int32_t> inside(region.begin(), region.end()), readers;
  int64_t windows = std::count_if(region.begin(), region.end(),
                                  [&](int32_t id) { return IsWindowNode(graph, id); });
  for (int32_t id : region) readers.insert(graph.users(id).begin(), graph.users(id).end());
  while (!readers.empty() && *readers.begin() < region.back()) {
    const int32_t id = *readers.begin();
    readers.erase(readers.begin());
    const bool window = IsWindowNode(graph, id);
    if (inside.count(id) > 0 || (window ? windows == max_windows : !RidesAlong(graph, id)))
      continue;
    const std::vector<ValueId>& inputs = graph.node(id).inputs;
    if (!std::all_of(inputs.begin(), inputs.end(),
                     [&](ValueId v) { return inside.count(v.node) > 0 || IsWeight(graph, v); }))
      continue;
    if (window) ++windows;
    inside.insert(id);
    readers.insert(graph.users(id).begin(), graph.users(id).end());
  }
  return {inside.begin(), inside.end()};
}

}  // namespace

bool IsWindowNode(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  if (node.outputs.size() != 1 || node.inputs.empty() || IsWeight(graph, node.inputs[0]))
    return false;
  if (node.op->name == "Conv") {
    return std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                       [&](ValueId v) { return IsWeight(graph, v); });
  }
  return (node.op->name == "MaxPool" || node.op->name == "AveragePool") &&
         node.attrs.Int("ceil_mode") == 0;
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

std::vector<std::vector<int32_t>> RegionsEndingAt(const Graph& graph, int32_t node,
                                                  int max_windows) {
  std::vector<std::vector<int32_t>> regions;
  if (!IsWindowNode(graph, node) && !RidesAlong(graph, node)) return regions;
  const std::vector<int32_t>& users = graph.users(node);
  if (users.size() == 1 && !graph.IsOutput(node) && IsPointwise(graph, users[0])) return regions;
  for (const bool several : {false, true}) {
    for (int windows = 1; windows <= max_windows; windows *= 2) {
      std::vector<int32_t> region = WithoutIdleInputs(graph, Grow(graph, node, windows, several));
      if (region.empty() || region.back() != node) break;
      if (several) region = WithReaders(graph, region, windows);
      if (std::find(regions.begin(), regions.end(), region) == regions.end())
        regions.push_back(std::move(region));
    }
  }
  return regions;
}

}  // namespace mendel
