#include "verifier/constants.h"

#include <map>
#include <set>
#include <vector>

#include "base/status.h"

namespace mendel {
namespace {

bool MayBeSymbol(const Tensor& value) { return IsFloat(value.dtype()) && value.size() > 1; }

/// Content hashes of the constants that may be symbols. Types that only one side has need no hash.
std::map<const Node*, std::string> ContentHashes(const Graph& graph,
                                                 const std::set<std::string>& types) {
  std::map<const Node*, std::string> hashes;
  for (const Node& node : graph.nodes()) {
    if (!IsConstant(node) || !MayBeSymbol(ConstantValue(node))) continue;
    if (types.contains(TypeString(node.outputs[0])))
      hashes[&node] = ConstantValue(node).ContentHash();
  }
  return hashes;
}

std::set<std::string> ConstantTypes(const Graph& graph) {
  std::set<std::string> types;
  for (const Node& node : graph.nodes()) {
    if (IsConstant(node)) types.insert(TypeString(node.outputs[0]));
  }
  return types;
}

std::set<std::string> Values(const std::map<const Node*, std::string>& hashes) {
  std::set<std::string> values;
  for (const auto& [node, hash] : hashes) values.insert(hash);
  return values;
}

/// `b` with the tensors that symbols of these names have in `a`, where `replace` says so.
absl::StatusOr<Graph> WithTensorsOf(
    const Graph& a, const Graph& b,
    const std::function<bool(const Tensor& of_a, const Tensor& of_b)>& replace) {
  std::map<std::string, const Tensor*> weights;
  for (const Node& node : a.nodes()) {
    if (IsConstant(node) && !SymbolName(node).empty())
      weights.emplace(SymbolName(node), &ConstantValue(node));
  }
  return RecastConstants(b, [&](const Node& node) {
    const auto other = SymbolName(node).empty() ? weights.end() : weights.find(SymbolName(node));
    const bool replaced = other != weights.end() && replace(*other->second, ConstantValue(node));
    return RecastConstant{replaced ? *other->second : ConstantValue(node), SymbolName(node)};
  });
}

}  // namespace

absl::StatusOr<Graph> RecastConstants(const Graph& graph,
                                      const std::function<RecastConstant(const Node&)>& recast) {
  GraphBuilder builder(graph.name());
  std::vector<std::vector<ValueId>> map(graph.nodes().size());
  // Inputs first: their order among themselves is part of the interface.
  for (int32_t id : graph.inputs()) {
    map[static_cast<size_t>(id)] = {
        builder.Input(InputName(graph.node(id)), graph.node(id).outputs[0])};
  }
  const auto mapped = [&](ValueId value) {
    return map[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
  };
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (IsInput(node)) continue;
    if (IsConstant(node)) {
      RecastConstant constant = recast(node);
      map[i] = {builder.Constant(std::move(constant.value), std::move(constant.symbol))};
      continue;
    }
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(mapped(input));
    MENDEL_ASSIGN_OR_RETURN(const int32_t id, builder.CopyNode(node, std::move(inputs)));
    for (size_t k = 0; k < node.outputs.size(); ++k)
      map[i].push_back({id, static_cast<int32_t>(k)});
  }
  for (const GraphOutput& output : graph.outputs())
    builder.Output(output.name, mapped(output.value));
  return builder.Build();
}

absl::StatusOr<std::pair<Graph, Graph>> ShareEqualConstants(const Graph& a, const Graph& b) {
  const auto hashes_a = ContentHashes(a, ConstantTypes(b));
  const auto hashes_b = ContentHashes(b, ConstantTypes(a));
  const auto share = [](const Graph& graph, const auto& hashes,
                        const std::set<std::string>& others) {
    return RecastConstants(graph, [&](const Node& node) {
      const auto hash = hashes.find(&node);
      const bool shared = hash != hashes.end() && others.contains(hash->second);
      return RecastConstant{ConstantValue(node), shared ? "content " + hash->second : ""};
    });
  };
  MENDEL_ASSIGN_OR_RETURN(Graph shared_a, share(a, hashes_a, Values(hashes_b)));
  MENDEL_ASSIGN_OR_RETURN(Graph shared_b, share(b, hashes_b, Values(hashes_a)));
  return std::pair(std::move(shared_a), std::move(shared_b));
}

absl::StatusOr<Graph> WithWeightsOf(const Graph& a, const Graph& b) {
  return WithTensorsOf(
      a, b, [](const Tensor& of_a, const Tensor& of_b) { return of_a.type() == of_b.type(); });
}

absl::StatusOr<Graph> HoldEqualWeightsOnce(const Graph& a, const Graph& b) {
  return WithTensorsOf(a, b, [](const Tensor& of_a, const Tensor& of_b) { return of_a == of_b; });
}

}  // namespace mendel
