#include "kernels/cuda/offline/predictor.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "kernels/cuda/backend/corrected_copy.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/offline/assumptions.h"
#include "kernels/cuda/tiled/tensor_cores.h"

namespace mendel::cuda {
namespace {

/// One group for each node that is not computed elsewhere, for graphs that the backend refuses.
std::vector<FusionGroup> OneByOne(const Partition& partition) {
  const Graph& graph = partition.graph;
  std::vector<FusionGroup> groups;
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (partition.elsewhere[static_cast<size_t>(id)] || IsInput(node) || node.op->is_view) continue;
    for (int32_t k = 0; k < static_cast<int32_t>(node.outputs.size()); ++k)
      groups.push_back({{id, k}, {id}, -1});
  }
  return groups;
}

/// Bytes of `value` that `node` reads as part of a launch: one element for each of its own, or all
/// of them.
int64_t BytesRead(const Graph& graph, int32_t node, ValueId value, ValueId result) {
  const TensorType& type = graph.type(value);
  const OperatorText* text = FindOperatorText(graph.node(node).op->name);
  if (text == nullptr || text->reads == Reads::kMany || text->is_row()) return ByteSize(type);
  const TensorType& output = graph.type({node, node == result.node ? result.output : 0});
  return std::min(ByteSize(type), NumElements(output) * DTypeSize(type.dtype));
}

double FlopsOf(const Graph& graph, int32_t id) {
  return WithView(graph, id,
                  [&](const NodeView& view) { return CostOf(*graph.node(id).op, view).flops; });
}

double LaunchSeconds(const Graph& graph, const FusionGroup& group, const GpuModel& gpu) {
  double arithmetic = 0;
  std::map<ValueId, int64_t> read;
  for (const int32_t id : group.nodes) {
    const Node& node = graph.node(id);
    const OperatorText* text = FindOperatorText(node.op->name);
    const double share = text != nullptr && text->is_product() ? kDirectShare : 1;
    arithmetic += FlopsOf(graph, id) /
                  (share * (node.outputs[0].dtype == DType::kF64 ? gpu.double_flops : gpu.flops));
    for (const ValueId input : node.inputs) {
      if (group.nodes.count(input.node) > 0) continue;
      int64_t& bytes = read[input];
      bytes = std::max(bytes, BytesRead(graph, id, input, group.result));
    }
  }
  double bytes = static_cast<double>(ByteSize(graph.type(group.result)));
  for (const auto& [value, count] : read) bytes += static_cast<double>(count);
  return std::max(arithmetic, bytes / gpu.bandwidth) + kLaunchSeconds;
}

/// Bytes that a call or a kernel reads, each value once, and those of its result.
double BytesOf(const Graph& graph, const std::vector<KernelOperand>& operands, ValueId result) {
  double bytes = static_cast<double>(ByteSize(graph.type(result)));
  std::set<ValueId> read;
  for (const KernelOperand& operand : operands) {
    if (operand.value.node < 0) {
      bytes += static_cast<double>(operand.table.bytes().size());
    } else if (read.insert(operand.value).second) {
      bytes += static_cast<double>(ByteSize(graph.type(operand.value)));
    }
  }
  return bytes;
}

/// Seconds of a tiled kernel's arithmetic: whole blocks, as many at a time as there are
/// multiprocessors.
double TiledArithmetic(const Graph& graph, const LibraryGroup& group, const GpuModel& gpu) {
  const bool in_double = graph.type({group.node, 0}).dtype == DType::kF64;
  const int64_t waves = (group.kernel.launch.grid + gpu.multiprocessors - 1) /
                        gpu.multiprocessors;  // of whole blocks
  const double peak = TiledFlops(gpu, TensorCoresOf(group.algorithm), in_double);
  return static_cast<double>(waves * gpu.multiprocessors) * 2 * group.kernel.block_products / peak;
}

double CallSeconds(const Partition& partition, const LibraryGroup& group, const GpuModel& gpu) {
  const Graph& graph = partition.graph;
  double bytes = BytesOf(graph, group.operands, group.result), arithmetic = 0, launches = 1;
  if (group.call == nullptr) {
    arithmetic = TiledArithmetic(graph, group, gpu);
  } else {
    double flops = 0;
    for (const int32_t id : group.nodes)
      flops += partition.OriginOf(id).conversion ? 0 : FlopsOf(graph, id);
    arithmetic = flops / CallFlops(gpu, group.algorithm, group.operands.at(0).dtype);
    if (ConvertsLayout(group)) {
      const double converted = static_cast<double>(ByteSize(graph.type(group.operands[0].value)) +
                                                   ByteSize(graph.type(group.result)));
      bytes += 2 * converted;
      launches += 2;
    }
  }
  // The call writes its result, or parts of sums for the kernel after it.
  const double whole = static_cast<double>(ByteSize(graph.type(group.result)));
  const double left = group.scratch_bytes > 0 ? static_cast<double>(group.scratch_bytes) : whole;
  double seconds = std::max(arithmetic, (bytes - whole + left) / gpu.bandwidth);
  if (!group.finish.name.empty()) {
    seconds += (BytesOf(graph, group.finish.operands, group.result) + left) / gpu.bandwidth;
    ++launches;
  }
  return seconds + launches * kLaunchSeconds;
}

/// Seconds of its launches, and of the copy of the mutant's output if it is not in place.
double CorrectionSeconds(const Graph& graph, const PlannedCorrection& correction,
                         const GpuModel& gpu) {
  double seconds = 0;
  if (!correction.in_place) {
    seconds += 2 * static_cast<double>(ByteSize(graph.type(correction.base))) / gpu.bandwidth +
               kLaunchSeconds;
  }
  for (size_t k = 0; k < correction.shapes.size(); ++k) {
    const KernelShape& shape = correction.shapes[k];
    seconds += RooflineSeconds(correction.patch_kernels.kernels[k].correction, shape.launch,
                               shape.tile, gpu);
  }
  return seconds;
}

}  // namespace

Predictor::Predictor(const GpuModel& gpu) : gpu_(gpu), owned_(AssumedLibraries(gpu)) {
  for (const auto& library : owned_) libraries_.push_back(library.get());
}

absl::StatusOr<Partition> Predictor::PartitionFor(const Graph& graph,
                                                  const std::map<int32_t, std::string>& algorithms,
                                                  Numerics numerics) const {
  return PartitionOf(graph, algorithms, numerics, libraries_);
}

absl::StatusOr<std::vector<double>> Predictor::Seconds(
    const Graph& graph, const std::map<int32_t, std::string>& algorithms, Numerics numerics) const {
  MENDEL_ASSIGN_OR_RETURN(const Partition partition, PartitionFor(graph, algorithms, numerics));
  std::vector<double> seconds(graph.nodes().size(), 0);
  const auto count = [&](int32_t node, double more) {
    seconds[static_cast<size_t>(partition.OriginOf(node).node)] += more;
  };
  for (const PlannedCorrection& correction : partition.plan.corrections) {
    count(correction.patch, CorrectionSeconds(partition.graph, correction, gpu_));
  }
  for (const LibraryGroup& call : partition.calls)
    count(call.result.node, CallSeconds(partition, call, gpu_));
  const auto groups = partition.Groups();
  for (const FusionGroup& group : groups.ok() ? *groups : OneByOne(partition)) {
    const bool taken_along = CorrectionOver(partition, group) != nullptr;
    count(group.result.node,
          LaunchSeconds(partition.graph, group, gpu_) - (taken_along ? kLaunchSeconds : 0));
  }
  return seconds;
}

}  // namespace mendel::cuda
