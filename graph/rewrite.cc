#include "graph/rewrite.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/status.h"
#include "base/work.h"
#include "graph/text.h"

namespace mendel {
namespace {

/// Copies single nodes of one graph into a builder, remembering where each went.
class NodeCopier {
 public:
  NodeCopier(const Graph& graph, GraphBuilder& builder) : graph_(graph), builder_(builder) {}

  absl::Status Copy(int32_t id) {
    const Node& node = graph_.node(id);
    CountWork();
    std::vector<ValueId> inputs;
    for (ValueId value : node.inputs) inputs.push_back(Map(value));
    MENDEL_ASSIGN_OR_RETURN(where_[id], builder_.CopyNode(node, std::move(inputs)));
    return absl::OkStatus();
  }
  bool Copied(int32_t id) const { return where_.count(id) > 0; }
  void Bind(ValueId from, ValueId to) { bound_[from] = to; }
  ValueId Map(ValueId value) const {
    const auto it = bound_.find(value);
    return it != bound_.end() ? it->second : ValueId{where_.at(value.node), value.output};
  }

 private:
  const Graph& graph_;
  GraphBuilder& builder_;
  std::unordered_map<int32_t, int32_t> where_;
  std::map<ValueId, ValueId> bound_;
};

/// `roots` and everything that they depend on, from node `first` on, ascending.
std::vector<int32_t> AncestorsFrom(const Graph& graph, const std::vector<ValueId>& roots,
                                   int32_t first) {
  std::set<int32_t> found;
  std::vector<int32_t> open;
  const auto visit = [&](ValueId value) {
    if (value.node >= first && found.insert(value.node).second) open.push_back(value.node);
  };
  for (const ValueId root : roots) visit(root);
  while (!open.empty()) {
    const int32_t id = open.back();
    open.pop_back();
    CountWork();
    for (const ValueId value : graph.node(id).inputs) visit(value);
  }
  return {found.begin(), found.end()};
}

/// Adds `program` in the place of `place`; its outputs stand for the place's from here on.
absl::Status InlineAt(const Graph& graph, const Subprogram& place, const Graph& program,
                      NodeCopier& copier, GraphBuilder& builder) {
  if (program.outputs().size() != place.outputs.size()) {
    return InvalidInput("replacement has ", program.outputs().size(), " outputs, not ",
                        place.outputs.size());
  }
  std::vector<ValueId> inputs;
  for (ValueId value : place.inputs) inputs.push_back(copier.Map(value));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, Inline(program, inputs, builder));
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (builder.type(outputs[k]) != graph.type(place.outputs[k])) {
      return InvalidInput("output ", k, " of the replacement must be ",
                          TypeString(graph.type(place.outputs[k])), ", not ",
                          TypeString(builder.type(outputs[k])));
    }
    copier.Bind(place.outputs[k], outputs[k]);
  }
  return absl::OkStatus();
}

double Flops(const Graph& graph, int32_t node) {
  return WithView(graph, node,
                  [&](const NodeView& view) { return CostOf(*graph.node(node).op, view).flops; });
}

}  // namespace

double RunTimeFlops(const Graph& graph) {
  double flops = 0;
  for (int32_t i = 0; i < static_cast<int32_t>(graph.nodes().size()); ++i) {
    if (!graph.constant()[static_cast<size_t>(i)] && !IsInput(graph.node(i)))
      flops += Flops(graph, i);
  }
  return flops;
}

double TotalFlops(const Graph& graph) {
  double flops = 0;
  for (int32_t i = 0; i < static_cast<int32_t>(graph.nodes().size()); ++i) flops += Flops(graph, i);
  return flops;
}

absl::StatusOr<Subprogram> MakeSubprogram(const Graph& graph, std::vector<int32_t> nodes) {
  const std::vector<bool>& constant = graph.constant();
  Subprogram result;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  for (int32_t id : nodes) {
    if (IsInput(graph.node(id))) return InvalidInput("a subprogram cannot hold a graph input");
    if (!constant[static_cast<size_t>(id)]) result.nodes.push_back(id);
  }
  if (result.nodes.empty()) return result;
  const auto inside = [&](int32_t id) {
    return std::binary_search(result.nodes.begin(), result.nodes.end(), id);
  };
  std::set<ValueId> inputs;
  for (int32_t id : result.nodes) {
    for (ValueId value : graph.node(id).inputs) {
      if (!constant[static_cast<size_t>(value.node)] && !inside(value.node)) inputs.insert(value);
    }
  }
  result.inputs.assign(inputs.begin(), inputs.end());
  // A path that leaves the nodes and comes back passes only between the first and the last.
  const std::vector<int32_t> before = AncestorsFrom(graph, result.inputs, result.nodes.front());
  if (std::any_of(before.begin(), before.end(), inside))
    return InvalidInput("the nodes of a subprogram must be convex");
  for (int32_t id : result.nodes) {
    const size_t count = graph.node(id).outputs.size();
    for (size_t k = 0; k < count; ++k) {
      const ValueId value{id, static_cast<int32_t>(k)};
      const bool delivered =
          graph.IsOutput(id) &&
          (count == 1 || std::any_of(graph.outputs().begin(), graph.outputs().end(),
                                     [&](const GraphOutput& o) { return o.value == value; }));
      const auto reads_outside = [&](int32_t user) {
        const auto& reads = graph.node(user).inputs;
        return !inside(user) && std::find(reads.begin(), reads.end(), value) != reads.end();
      };
      const std::vector<int32_t>& users = graph.users(id);
      if (delivered || std::any_of(users.begin(), users.end(), reads_outside))
        result.outputs.push_back(value);
    }
  }
  return result;
}

absl::StatusOr<Graph> Extract(const Graph& graph, const Subprogram& subprogram) {
  GraphBuilder builder;
  NodeCopier copier(graph, builder);
  for (size_t k = 0; k < subprogram.inputs.size(); ++k) {
    copier.Bind(subprogram.inputs[k],
                builder.Input(Cat("in", k), graph.type(subprogram.inputs[k])));
  }
  std::vector<ValueId> weights;
  for (int32_t id : subprogram.nodes) {
    for (ValueId value : graph.node(id).inputs) {
      if (graph.constant()[static_cast<size_t>(value.node)]) weights.push_back(value);
    }
  }
  std::vector<int32_t> needed = AncestorsFrom(graph, weights, 0);
  needed.insert(needed.end(), subprogram.nodes.begin(), subprogram.nodes.end());
  std::sort(needed.begin(), needed.end());
  for (int32_t id : needed) MENDEL_RETURN_IF_ERROR(copier.Copy(id));
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
  const Replacement one{subprogram, replacement};
  return ReplaceAll(graph, {&one, 1});
}

absl::StatusOr<Graph> ReplaceAll(const Graph& graph, std::span<const Replacement> replacements) {
  GraphBuilder builder(graph.name());
  NodeCopier copier(graph, builder);
  for (int32_t id : graph.inputs()) MENDEL_RETURN_IF_ERROR(copier.Copy(id));
  int32_t next = 0;  // all nodes before it are copied or replaced
  const auto copy_up_to = [&](int32_t end, std::span<const int32_t> without) -> absl::Status {
    for (; next < end; ++next) {
      if (!copier.Copied(next) && !std::binary_search(without.begin(), without.end(), next))
        MENDEL_RETURN_IF_ERROR(copier.Copy(next));
    }
    return absl::OkStatus();
  };
  for (const auto& [place, program] : replacements) {
    if (place.nodes.empty() || place.nodes.front() < next)
      return InvalidInput("a replaced subprogram must begin behind the one before");
    MENDEL_RETURN_IF_ERROR(copy_up_to(place.nodes.front(), {}));
    for (int32_t id : AncestorsFrom(graph, place.inputs, next)) {
      if (!copier.Copied(id)) MENDEL_RETURN_IF_ERROR(copier.Copy(id));
    }
    MENDEL_RETURN_IF_ERROR(InlineAt(graph, place, program, copier, builder));
    MENDEL_RETURN_IF_ERROR(copy_up_to(place.nodes.back() + 1, place.nodes));
  }
  MENDEL_RETURN_IF_ERROR(copy_up_to(static_cast<int32_t>(graph.nodes().size()), {}));
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
