#include "kernels/cuda/offline/predictor.h"

#include <algorithm>
#include <map>

#include "graph/rewrite.h"
#include "kernels/cuda/fusion/grouping.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda {
namespace {

/// Every computed node alone, for graphs that the backend refuses.
std::vector<FusionGroup> OneByOne(const Graph& graph, const std::vector<bool>& constant) {
  std::vector<FusionGroup> groups;
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (constant[static_cast<size_t>(id)] || IsInput(node) || node.op->is_view) continue;
    for (int32_t k = 0; k < static_cast<int32_t>(node.outputs.size()); ++k) groups.push_back({{id, k}, {id}, -1});
  }
  return groups;
}

/// Bytes that `node` reads of `value` as part of a launch: one element an element of its own, or all of it.
int64_t BytesRead(const Graph& graph, int32_t node, ValueId value, ValueId result) {
  const TensorType& type = graph.type(value);
  const OperatorText* text = FindOperatorText(graph.node(node).op->name);
  if (text == nullptr || text->reads == Reads::kMany || text->is_row()) return ByteSize(type);
  const TensorType& output = graph.type({node, node == result.node ? result.output : 0});
  return std::min(ByteSize(type), NumElements(output) * DTypeSize(type.dtype));
}

double LaunchSeconds(const Graph& graph, const FusionGroup& group, const GpuModel& gpu) {
  double flops = 0;
  bool in_double = false;
  std::map<ValueId, int64_t> read;
  for (const int32_t id : group.nodes) {
    const Node& node = graph.node(id);
    flops += WithView(graph, id, [&](const NodeView& view) { return CostOf(*node.op, view).flops; });
    in_double = in_double || node.outputs[0].dtype == DType::kF64;
    for (const ValueId input : node.inputs) {
      if (group.nodes.count(input.node) > 0) continue;
      int64_t& bytes = read[input];
      bytes = std::max(bytes, BytesRead(graph, id, input, group.result));
    }
  }
  double bytes = static_cast<double>(ByteSize(graph.type(group.result)));
  for (const auto& [value, count] : read) bytes += static_cast<double>(count);
  return std::max(flops / (in_double ? gpu.double_flops : gpu.flops), bytes / gpu.bandwidth) + kLaunchSeconds;
}

}  // namespace

std::vector<double> PredictSeconds(const Graph& graph, const GpuModel& gpu) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  const auto groups = GroupsOf(graph, constant);
  std::vector<double> seconds(graph.nodes().size(), 0);
  for (const FusionGroup& group : groups.ok() ? *groups : OneByOne(graph, constant)) {
    seconds[static_cast<size_t>(group.result.node)] += LaunchSeconds(graph, group, gpu);
  }
  return seconds;
}

}  // namespace mendel::cuda
