#include "kernels/cpu/lowering/layout_regions.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "graph/rewrite.h"
#include "kernels/cpu/simd/tile_math.h"
#include "runtime/kind_regions.h"

namespace mendel::cpu {
namespace {

bool HasBlockedLayouts(const Node& node) {
  return node.op->name == "Conv" || node.op->name == "ConvTranspose";
}

/// True for operators that compute in whatever layout the operands have.
bool FollowsLayout(const Node& node) {
  static constexpr std::array<std::string_view, 5> kOthers = {"AveragePool", "BatchNormalization",
                                                              "Concat", "Gelu", "MaxPool"};
  return std::find(kOthers.begin(), kOthers.end(), node.op->name) != kOthers.end() ||
         FindTileFunction(node.op->name) != nullptr;
}

/// True when the positions are the same, whatever the channels.
bool KeepsExtents(const Shape& from, const Shape& to) {
  return from.size() >= 3 && from.size() == to.size() &&
         std::equal(from.begin() + 2, from.end(), to.begin() + 2);
}

/// Returns the node's step, or that of the value that it is a view of; null when none computes it.
const Step* StepOf(const Graph& graph, const std::vector<const Step*>& by_node, int32_t node) {
  while (by_node[static_cast<size_t>(node)] == nullptr && graph.node(node).op->is_view)
    node = graph.node(node).inputs[0].node;
  return by_node[static_cast<size_t>(node)];
}

}  // namespace

std::vector<std::vector<int32_t>> LayoutRegions(const Graph& graph,
                                                const std::set<int32_t>& nodes) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  std::set<int32_t> convolutions;
  for (const int32_t node : nodes) {
    if (graph.node(node).op->name == "Conv") convolutions.insert(node);
  }
  const auto passes = [&](int32_t id) {
    return !constant[static_cast<size_t>(id)] && FollowsLayout(graph.node(id));
  };
  const auto joins = [&](ValueId value, int32_t reader) {
    return !constant[static_cast<size_t>(value.node)] &&
           KeepsExtents(graph.type(value).shape, graph.node(reader).outputs[0].shape);
  };
  std::vector<std::vector<int32_t>> regions = ConnectedCalls(graph, convolutions, passes, joins);
  std::erase_if(regions, [](const std::vector<int32_t>& region) { return region.size() < 2; });
  return regions;
}

void ChargeConversions(const Graph& graph, const std::map<int32_t, std::string>& algorithms,
                       std::vector<ProgramStep>& steps) {
  std::vector<const Step*> by_node(graph.nodes().size(), nullptr);
  for (const ProgramStep& step : steps) {
    for (const int32_t node : step.info.nodes) by_node[static_cast<size_t>(node)] = &step.info;
  }
  const Step* reader = nullptr;
  for (size_t k = steps.size(); k-- > 0;) {
    Step& step = steps[k].info;
    if (!step.nodes.empty()) {
      reader = &step;
    } else if (!step.requested_by.empty()) {
      const Step* const producer = StepOf(graph, by_node, step.requested_by[0]);
      step.requested_by.clear();
      const bool follows =
          reader != nullptr &&
          std::any_of(reader->nodes.begin(), reader->nodes.end(), [&](int32_t node) {
            return HasBlockedLayouts(graph.node(node)) || FollowsLayout(graph.node(node));
          });
      if (!follows) continue;
      for (const Step* side : {producer, reader}) {
        if (side == nullptr) continue;
        for (const int32_t node : side->nodes) {
          if (algorithms.count(node) > 0) step.requested_by.push_back(node);
        }
      }
    }
  }
}

}  // namespace mendel::cpu
