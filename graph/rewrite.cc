#include "graph/rewrite.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/status.h"
#include "graph/text.h"

namespace mendel {
namespace {

/// Copies single nodes of one graph into a builder, remembering where each went.
class NodeCopier {
 public:
  NodeCopier(const Graph& graph, GraphBuilder& builder)
      : graph_(graph), builder_(builder), where_(graph.nodes().size(), -1) {}

  absl::Status Copy(int32_t id) {
    const Node& node = graph_.node(id);
    std::vector<ValueId> inputs;
    for (ValueId value : node.inputs) inputs.push_back(Map(value));
    MENDEL_ASSIGN_OR_RETURN(where_[static_cast<size_t>(id)],
                            builder_.CopyNode(node, std::move(inputs)));
    return absl::OkStatus();
  }
  bool Copied(int32_t id) const { return where_[static_cast<size_t>(id)] >= 0; }
  void Bind(ValueId from, ValueId to) { bound_[from] = to; }
  ValueId Map(ValueId value) const {
    const auto it = bound_.find(value);
    return it != bound_.end() ? it->second
                              : ValueId{where_[static_cast<size_t>(value.node)], value.output};
  }

 private:
  const Graph& graph_;
  GraphBuilder& builder_;
  std::vector<int32_t> where_;
  std::map<ValueId, ValueId> bound_;
};

/// Marks every node that one of the marked nodes depends on.
void MarkAncestors(const Graph& graph, std::vector<bool>& marked) {
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    if (!marked[i]) continue;
    for (ValueId value : graph.nodes()[i].inputs) marked[static_cast<size_t>(value.node)] = true;
  }
}

}  // namespace

std::vector<bool> ConstantExpressions(const Graph& graph) {
  std::vector<bool> constant(graph.nodes().size(), false);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    constant[i] =
        !IsInput(node) && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId value) {
          return constant[static_cast<size_t>(value.node)];
        });
  }
  return constant;
}

double RunTimeFlops(const Graph& graph) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  double flops = 0;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (constant[i] || IsInput(node)) continue;
    flops += WithView(graph, static_cast<int32_t>(i),
                      [&](const NodeView& view) { return CostOf(*node.op, view).flops; });
  }
  return flops;
}

absl::StatusOr<Subprogram> MakeSubprogram(const Graph& graph, std::vector<int32_t> nodes) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  std::vector<bool> inside(graph.nodes().size(), false);
  Subprogram result;
  std::sort(nodes.begin(), nodes.end());
  for (int32_t id : nodes) {
    if (IsInput(graph.node(id))) return InvalidInput("a subprogram cannot hold a graph input");
    if (constant[static_cast<size_t>(id)] || inside[static_cast<size_t>(id)]) continue;
    inside[static_cast<size_t>(id)] = true;
    result.nodes.push_back(id);
  }
  std::set<ValueId> inputs;
  for (int32_t id : result.nodes) {
    for (ValueId value : graph.node(id).inputs) {
      const size_t producer = static_cast<size_t>(value.node);
      if (!inside[producer] && !constant[producer]) inputs.insert(value);
    }
  }
  result.inputs.assign(inputs.begin(), inputs.end());
  std::vector<bool> before(graph.nodes().size(), false);
  for (ValueId value : result.inputs) before[static_cast<size_t>(value.node)] = true;
  MarkAncestors(graph, before);
  for (int32_t id : result.nodes) {
    if (before[static_cast<size_t>(id)])
      return InvalidInput("the nodes of a subprogram must be convex");
    for (size_t k = 0; k < graph.node(id).outputs.size(); ++k) {
      const ValueId value{id, static_cast<int32_t>(k)};
      bool outside = std::any_of(graph.outputs().begin(), graph.outputs().end(),
                                 [&](const auto& o) { return o.value == value; });
      for (int32_t user : graph.users(id)) {
        const auto& reads = graph.node(user).inputs;
        outside = outside || (!inside[static_cast<size_t>(user)] &&
                              std::find(reads.begin(), reads.end(), value) != reads.end());
      }
      if (outside) result.outputs.push_back(value);
    }
  }
  return result;
}

absl::StatusOr<Graph> Extract(const Graph& graph, const Subprogram& subprogram) {
  GraphBuilder builder;
  NodeCopier copier(graph, builder);
  std::vector<bool> needed(graph.nodes().size(), false);
  for (int32_t id : subprogram.nodes) needed[static_cast<size_t>(id)] = true;
  for (size_t k = 0; k < subprogram.inputs.size(); ++k) {
    copier.Bind(subprogram.inputs[k],
                builder.Input(Cat("in", k), graph.type(subprogram.inputs[k])));
  }
  const std::vector<bool> constant = ConstantExpressions(graph);
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (ValueId value : graph.nodes()[i].inputs) {
      if (constant[static_cast<size_t>(value.node)]) needed[static_cast<size_t>(value.node)] = true;
    }
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (needed[i]) MENDEL_RETURN_IF_ERROR(copier.Copy(static_cast<int32_t>(i)));
  }
  for (size_t k = 0; k < subprogram.outputs.size(); ++k)
    builder.Output(Cat("out", k), copier.Map(subprogram.outputs[k]));
  return builder.Build();
}

absl::StatusOr<std::vector<ValueId>> Inline(const Graph& graph, const std::vector<ValueId>& inputs,
                                            GraphBuilder& builder) {
  if (inputs.size() != graph.inputs().size())
    return InvalidInput("program has ", graph.inputs().size(), " inputs, not ", inputs.size());
  NodeCopier copier(graph, builder);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const ValueId input{graph.inputs()[k], 0};
    if (graph.type(input) != builder.type(inputs[k])) {
      return InvalidInput("input ", k, " must be ", TypeString(graph.type(input)), ", not ",
                          TypeString(builder.type(inputs[k])));
    }
    copier.Bind(input, inputs[k]);
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!IsInput(graph.nodes()[i])) MENDEL_RETURN_IF_ERROR(copier.Copy(static_cast<int32_t>(i)));
  }
  std::vector<ValueId> outputs;
  for (const GraphOutput& output : graph.outputs()) outputs.push_back(copier.Map(output.value));
  return outputs;
}

absl::StatusOr<Graph> Replace(const Graph& graph, const Subprogram& subprogram,
                              const Graph& replacement) {
  if (replacement.outputs().size() != subprogram.outputs.size()) {
    return InvalidInput("replacement has ", replacement.outputs().size(), " outputs, not ",
                        subprogram.outputs.size());
  }
  GraphBuilder builder(graph.name());
  NodeCopier copier(graph, builder);
  std::vector<bool> inside(graph.nodes().size(), false);
  for (int32_t id : subprogram.nodes) inside[static_cast<size_t>(id)] = true;
  for (int32_t id : graph.inputs()) MENDEL_RETURN_IF_ERROR(copier.Copy(id));
  std::vector<bool> before(graph.nodes().size(), false);
  for (ValueId value : subprogram.inputs) before[static_cast<size_t>(value.node)] = true;
  MarkAncestors(graph, before);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (before[i] && !copier.Copied(static_cast<int32_t>(i)))
      MENDEL_RETURN_IF_ERROR(copier.Copy(static_cast<int32_t>(i)));
  }
  std::vector<ValueId> inputs;
  for (ValueId value : subprogram.inputs) inputs.push_back(copier.Map(value));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, Inline(replacement, inputs, builder));
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (builder.type(outputs[k]) != graph.type(subprogram.outputs[k])) {
      return InvalidInput("output ", k, " of the replacement must be ",
                          TypeString(graph.type(subprogram.outputs[k])), ", not ",
                          TypeString(builder.type(outputs[k])));
    }
    copier.Bind(subprogram.outputs[k], outputs[k]);
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!inside[i] && !copier.Copied(static_cast<int32_t>(i)))
      MENDEL_RETURN_IF_ERROR(copier.Copy(static_cast<int32_t>(i)));
  }
  for (const GraphOutput& output : graph.outputs())
    builder.Output(output.name, copier.Map(output.value));
  return builder.Build();
}

absl::StatusOr<Graph> Deduplicate(const Graph& graph) {
  GraphBuilder builder(graph.name());
  NodeCopier copier(graph, builder);
  std::map<std::string, int32_t>
      seen;  // text of the node over the new numbering -> first such node here
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const int32_t id = static_cast<int32_t>(i);
    if (IsInput(node) || IsConstant(node)) {
      MENDEL_RETURN_IF_ERROR(copier.Copy(id));
      continue;
    }
    std::string key(node.op->name);
    for (ValueId value : node.inputs) {
      const ValueId mapped = copier.Map(value);
      key += Cat(" ", mapped.node, ".", mapped.output);
    }
    key += PrintAttributes(node.attrs);
    const auto [it, fresh] = seen.emplace(std::move(key), id);
    if (fresh) {
      MENDEL_RETURN_IF_ERROR(copier.Copy(id));
      continue;
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      copier.Bind({id, static_cast<int32_t>(k)}, copier.Map({it->second, static_cast<int32_t>(k)}));
    }
  }
  for (const GraphOutput& output : graph.outputs())
    builder.Output(output.name, copier.Map(output.value));
  return builder.Build();
}

}  // namespace mendel
