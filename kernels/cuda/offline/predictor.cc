#include "kernels/cuda/offline/predictor.h"

#include <algorithm>
#include <map>

#include "graph/rewrite.h"
#include "kernels/cuda/emit/correction_plan.h"
#include "kernels/cuda/fusion/grouping.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda {
namespace {

/// Every node alone that is not computed elsewhere, for graphs that the backend refuses.
std::vector<FusionGroup> OneByOne(const Graph& graph, const std::vector<bool>& elsewhere, const std::vector<bool>& unused) {
  std::vector<FusionGroup> groups;
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (elsewhere[static_cast<size_t>(id)] || unused[static_cast<size_t>(id)] || IsInput(node) || node.op->is_view) continue;
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

/// Its launches, and the copy of the mutant's output where it is not in place.
double CorrectionSeconds(const Graph& graph, const PlannedCorrection& correction, const GpuModel& gpu) {
  double seconds = 0;
  if (!correction.in_place) {
    seconds += 2 * static_cast<double>(ByteSize(graph.type(correction.base))) / gpu.bandwidth + kLaunchSeconds;
  }
  for (size_t k = 0; k < correction.shapes.size(); ++k) {
    const KernelShape& shape = correction.shapes[k];
    seconds += RooflineSeconds(correction.mending.kernels[k].correction, shape.launch, shape.tile, gpu);
  }
  return seconds;
}

}  // namespace

std::vector<double> PredictSeconds(const Graph& graph, const GpuModel& gpu) {
  std::vector<bool> elsewhere = ConstantExpressions(graph);
  const CorrectionPlan plan = PlanCorrections(graph, elsewhere);
  std::vector<double> seconds(graph.nodes().size(), 0);
  for (const PlannedCorrection& correction : plan.corrections) {
    elsewhere[static_cast<size_t>(correction.patch)] = true;
    seconds[static_cast<size_t>(correction.patch)] = CorrectionSeconds(graph, correction, gpu);
  }
  const auto groups = GroupsOf(graph, elsewhere, {plan.unused, plan.stored});
  for (const FusionGroup& group : groups.ok() ? *groups : OneByOne(graph, elsewhere, plan.unused)) {
    seconds[static_cast<size_t>(group.result.node)] += LaunchSeconds(graph, group, gpu);
  }
  return seconds;
}

}  // namespace mendel::cuda
