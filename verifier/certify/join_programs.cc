#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "verifier/regions/probe.h"

namespace mendel {
namespace {

/// Appends the nodes of `graph`; returns its outputs.
absl::StatusOr<std::vector<ValueId>> Append(const Graph& graph, const std::vector<ValueId>& inputs,
                                            WeightMode weights, GraphBuilder& builder) {
  std::vector<int32_t> where(graph.nodes().size(), -1);
  for (size_t k = 0; k < inputs.size(); ++k)
    where[static_cast<size_t>(graph.inputs()[k])] = inputs[k].node;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (IsInput(node)) continue;
    if (IsConstant(node)) {
      const std::string& symbol = SymbolName(node);
      const bool named = weights == WeightMode::kSymbolic && !symbol.empty();
      where[i] = builder
                     .Constant(ConstantValue(node),
                               named ? Cat(symbol, " ", TypeString(node.outputs[0])) : "")
                     .node;
      continue;
    }
    std::vector<ValueId> operands;
    for (ValueId value : node.inputs)
      operands.push_back({where[static_cast<size_t>(value.node)], value.output});
    MENDEL_ASSIGN_OR_RETURN(where[i], builder.CopyNode(node, std::move(operands)));
  }
  std::vector<ValueId> outputs;
  for (const GraphOutput& output : graph.outputs()) {
    outputs.push_back({where[static_cast<size_t>(output.value.node)], output.value.output});
  }
  return outputs;
}

absl::Status SameTypes(const Graph& f, const Graph& g) {
  if (f.inputs().size() != g.inputs().size() || f.outputs().size() != g.outputs().size()) {
    return InvalidInput("the programs have ", f.inputs().size(), " and ", g.inputs().size(),
                        " inputs, ", f.outputs().size(), " and ", g.outputs().size(), " outputs");
  }
  for (size_t k = 0; k < f.inputs().size(); ++k) {
    const TensorType& a = f.type({f.inputs()[k], 0});
    const TensorType& b = g.type({g.inputs()[k], 0});
    if (a != b) return InvalidInput("input ", k, " is ", TypeString(a), " and ", TypeString(b));
  }
  for (size_t k = 0; k < f.outputs().size(); ++k) {
    const TensorType& a = f.type(f.outputs()[k].value);
    const TensorType& b = g.type(g.outputs()[k].value);
    if (a != b) return InvalidInput("output ", k, " is ", TypeString(a), " and ", TypeString(b));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Graph> JoinPrograms(const Graph& f, const Graph& g, WeightMode weights) {
  MENDEL_RETURN_IF_ERROR(SameTypes(f, g));
  GraphBuilder builder;
  std::vector<ValueId> inputs;
  for (int32_t id : f.inputs())
    inputs.push_back(builder.Input(InputName(f.node(id)), f.node(id).outputs[0]));
  for (const Graph* side : {&f, &g}) {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                            Append(*side, inputs, weights, builder));
    for (ValueId value : outputs) builder.Output("", value);
  }
  MENDEL_ASSIGN_OR_RETURN(const Graph both, builder.Build());
  return Deduplicate(both);
}

}  // namespace mendel
