#include "optimizer/profile/subprogram_key.h"

#include <map>

#include "base/hash.h"
#include "base/status.h"
#include "graph/text.h"

namespace mendel {

std::string SubprogramKey(const Graph& graph) {
  Sha256 hash;
  std::map<std::string, size_t> symbols;
  for (const Node& node : graph.nodes()) {
    hash.Update(node.op->name);
    if (IsConstant(node) && !SymbolName(node).empty()) {
      const size_t number = symbols.emplace(SymbolName(node), symbols.size()).first->second;
      hash.Update(Cat(" symbol ", number));
    } else if (IsInput(node)) {
      hash.Update(" input");
    } else {
      hash.Update(PrintAttributes(node.attrs));
    }
    for (ValueId value : node.inputs) hash.Update(Cat(" %", value.node, ".", value.output));
    for (const TensorType& type : node.outputs) hash.Update(Cat(" : ", TypeString(type)));
    hash.Update("\n");
  }
  for (const GraphOutput& output : graph.outputs())
    hash.Update(Cat("return %", output.value.node, ".", output.value.output, "\n"));
  return hash.HexDigest();
}

}  // namespace mendel
