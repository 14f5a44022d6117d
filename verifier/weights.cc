#include "verifier/weights.h"

#include <map>

namespace mendel {
namespace {

std::map<std::string, const Tensor*> Symbols(const Graph& graph) {
  std::map<std::string, const Tensor*> symbols;
  for (const Node& node : graph.nodes()) {
    if (IsConstant(node) && !SymbolName(node).empty()) symbols.emplace(SymbolName(node), &ConstantValue(node));
  }
  return symbols;
}

}  // namespace

std::vector<std::string> DifferingWeights(const Graph& a, const Graph& b) {
  const std::map<std::string, const Tensor*> others = Symbols(b);
  std::vector<std::string> differing;
  for (const auto& [name, tensor] : Symbols(a)) {
    const auto other = others.find(name);
    if (other != others.end() && !(*other->second == *tensor)) differing.push_back(name);
  }
  return differing;
}

}  // namespace mendel
