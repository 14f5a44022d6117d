#include "verifier/weights/shared_weights.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "verifier/certify/shared_values.h"

namespace mendel {
absl::StatusOr<RegionProgram> MakeRegionProgram(const Graph& joint, WeightMode weights) {
  const RegionProgram unchanged{joint, weights, false};
  if (weights == WeightMode::kSymbolic) return unchanged;
  const size_t count = joint.outputs().size() / 2;
  const std::vector<bool> f = OutputCone(joint, 0, count);
  const std::vector<bool> g = OutputCone(joint, count, joint.outputs().size());
  const auto shared = [&](size_t i) {
    const Node& node = joint.nodes()[i];
    return IsConstant(node) && f[i] && g[i] && IsFloat(node.outputs[0].dtype) &&
           NumElements(node.outputs[0]) > 1;
  };
  GraphBuilder builder(joint.name());
  std::vector<int32_t> where;
  bool any = false;
  for (size_t i = 0; i < joint.nodes().size(); ++i) {
    const Node& node = joint.nodes()[i];
    if (IsInput(node)) {
      where.push_back(builder.Input(InputName(node), node.outputs[0]).node);
    } else if (IsConstant(node)) {
      any = any || shared(i);
      where.push_back(
          builder.Constant(ConstantValue(node), shared(i) ? Cat("weight#", i, " shared") : "")
              .node);
    } else {
      std::vector<ValueId> operands;
      for (ValueId value : node.inputs)
        operands.push_back({where[static_cast<size_t>(value.node)], value.output});
      MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder.CopyNode(node, std::move(operands)));
      where.push_back(copy);
    }
  }
  if (!any) return unchanged;
  for (const GraphOutput& output : joint.outputs()) {
    builder.Output(output.name,
                   {where[static_cast<size_t>(output.value.node)], output.value.output});
  }
  MENDEL_ASSIGN_OR_RETURN(Graph graph, builder.Build());
  return RegionProgram{std::move(graph), WeightMode::kSymbolic, true};
}

}  // namespace mendel
