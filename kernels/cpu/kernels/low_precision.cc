#include "kernels/cpu/kernels/low_precision.h"

#include <algorithm>

#include "kernels/cpu/lowering/lower_direct.h"

namespace mendel::cpu {
namespace {

bool IsF32(const TensorType& type) { return type.dtype == DType::kF32 && NumElements(type) > 0; }

/// True when the algorithm is chosen by name for the group's contraction and exists.
bool RunsInBf16(const Lowering& lowering, const Group& group) {
  const auto named = lowering.options().algorithms.find(group.nodes[0]);
  if (named == lowering.options().algorithms.end() || named->second != kBf16Algorithm) return false;
  return RunsLowPrecision(lowering.graph(), group.nodes[0], lowering.options().numerics,
                          kBf16Algorithm);
}

bool OneDnnUses(dnnl::cpu_isa isa) {
  const auto needed = static_cast<unsigned>(isa);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
}

}  // namespace

bool MultipliesBf16() { return OneDnnUses(dnnl::cpu_isa::avx512_core_bf16); }
bool MultipliesBf16Tiles() { return OneDnnUses(dnnl::cpu_isa::avx512_core_amx); }

bool RunsLowPrecision(const Graph& graph, int32_t id, Numerics numerics,
                      std::string_view algorithm) {
  const Node& node = graph.node(id);
  const bool product = node.op->name == "MatMul";
  if (algorithm != kBf16Algorithm && algorithm != kBf16x3Algorithm) return false;
  if (!Allows(numerics, algorithm == kBf16Algorithm ? Numerics::kBf16 : Numerics::kHigh) ||
      !MultipliesBf16())
    return false;
  if (!product && node.op->name != "Conv" && node.op->name != "ConvTranspose") return false;
  const std::vector<TensorType> inputs = graph.InputTypes(id);
  if (!IsF32(node.outputs[0]) || !std::all_of(inputs.begin(), inputs.end(), IsF32)) return false;
  if (!HasConstantWeights(graph, node)) return false;
  return product ? MatMulRunsIn(algorithm, graph, id) : ConvRunsIn(algorithm, graph, id);
}

std::vector<std::string> LowPrecisionAlgorithms(const Graph& graph, int32_t id, Numerics numerics) {
  std::vector<std::string> names;
  for (const std::string_view algorithm : {kBf16Algorithm, kBf16x3Algorithm}) {
    if (algorithm == kBf16x3Algorithm && !MultipliesBf16Tiles()) continue;
    if (RunsLowPrecision(graph, id, numerics, algorithm)) names.emplace_back(algorithm);
  }
  return names;
}

void MarkNarrow(const Lowering& lowering, const std::set<int32_t>& taken,
                std::vector<std::optional<Group>>& groups) {
  if (!Allows(lowering.options().numerics, Numerics::kBf16)) return;
  const Graph& graph = lowering.graph();
  std::set<int32_t> roots;
  for (const std::optional<Group>& group : groups) {
    if (!group.has_value() || !group->contraction || taken.count(group->nodes[0]) != 0) continue;
    if (RunsInBf16(lowering, *group)) roots.insert(group->nodes[0]);
  }
  for (std::optional<Group>& group : groups) {
    if (!group.has_value() || roots.count(group->nodes[0]) == 0) continue;
    const ValueId result{group->nodes.back(), 0};
    const auto rounds = [&](int32_t user) {
      const std::vector<ValueId>& inputs = graph.node(user).inputs;
      return roots.count(user) != 0 && inputs[0] == result &&
             std::count(inputs.begin(), inputs.end(), result) == 1;
    };
    // oneDNN adds a residual in the type of the result.
    const bool adds =
        std::any_of(group->post_ops.begin(), group->post_ops.end(),
                    [](const PostOp& post_op) { return post_op.kind == PostOp::Kind::kResidual; });
    const std::vector<int32_t>& users = graph.users(result.node);
    group->narrow = !adds && !graph.IsOutput(result.node) && !users.empty() &&
                    std::all_of(users.begin(), users.end(), rounds);
  }
}

}  // namespace mendel::cpu
