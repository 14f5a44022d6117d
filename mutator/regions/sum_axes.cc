#include <map>

#include "graph/einsum_equation.h"
#include "mutator/regions/zeros.h"

namespace mendel {
namespace {

std::vector<SumAxes> SumsOfEinsum(const Node& node) {
  const auto equation = ParseEinsum(node.attrs.Str("equation"));
  if (!equation.ok()) return {};
  std::map<char, SumAxes> sums;
  for (size_t k = 0; k < equation->operands.size(); ++k) {
    for (size_t d = 0; d < equation->operands[k].size(); ++d) {
      const char label = equation->operands[k][d];
      if (equation->output.find(label) == std::string::npos) sums[label].emplace_back(k, d);
    }
  }
  std::vector<SumAxes> result;
  for (auto& [label, axes] : sums) result.push_back(std::move(axes));
  return result;
}

}  // namespace

std::vector<SumAxes> SumsOf(const Graph& graph, const Node& node) {
  const std::string_view op = node.op->name;
  const auto rank = [&](size_t k) { return graph.type(node.inputs[k]).shape.size(); };
  if (op == "Conv" && node.attrs.Int("group") == 1) return {{{0, 1}, {1, 1}}};
  if (op == "ConvTranspose" && node.attrs.Int("group") == 1) return {{{0, 1}, {1, 0}}};
  if (op == "MatMul") return {{{0, rank(0) - 1}, {1, rank(1) > 1 ? rank(1) - 2 : 0}}};
  if (op == "Einsum") return SumsOfEinsum(node);
  if (op != "ReduceSum" || node.inputs.size() != 1) return {};
  std::vector<SumAxes> sums;
  for (const int64_t axis : node.attrs.IntList("axes"))
    sums.push_back({{0, static_cast<size_t>(axis)}});
  return sums;
}

}  // namespace mendel
