#include "base/hash.h"
#include "base/status.h"
#include "graph/text.h"
#include "verifier/certify/numbering.h"
#include "verifier/verifier.h"

namespace mendel {

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kEquivalent:
      return "equivalent";
    case Verdict::kPartial:
      return "partial";
    case Verdict::kDifferent:
      return "different";
    case Verdict::kUnproven:
      return "unproven";
  }
  return "unproven";
}

std::string GraphHash(const Graph& graph, WeightMode weights) {
  ConstantKeys constants(weights);
  return HashGraph(graph, constants);
}

std::string HashGraph(const Graph& graph, ConstantKeys& constants) {
  Sha256 hash;
  for (const Node& node : graph.nodes()) {
    if (IsConstant(node)) {
      hash.Update(constants.Of(node));
    } else {
      hash.Update(Cat(node.op->name, PrintAttributes(node.attrs)));
    }
    for (ValueId input : node.inputs) hash.Update(Cat(" ", input.node, ".", input.output));
    for (const TensorType& type : node.outputs) hash.Update(Cat(" : ", TypeString(type)));
    hash.Update("\n");
  }
  for (const GraphOutput& output : graph.outputs()) {
    hash.Update(Cat("return ", output.name.size(), " ", output.name, " ", output.value.node, ".",
                    output.value.output, "\n"));
  }
  return hash.HexDigest();
}

}  // namespace mendel
