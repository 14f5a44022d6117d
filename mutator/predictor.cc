#include "mutator/predictor.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "graph/rewrite.h"

namespace mendel {
namespace {

bool AllOnes(const Ints& list) {
  return std::all_of(list.begin(), list.end(), [](int64_t v) { return v == 1; });
}

/// Fraction of a matrix product's speed.
double Efficiency(const Graph& graph, const Node& node, const DeviceRates& rates) {
  if (node.op->name == "ConvTranspose") return 0.4;
  if (node.op->name != "Conv") return 1;
  if (!AllOnes(node.attrs.IntList("dilations"))) return 0.6;
  const Shape& w = graph.type(node.inputs[1]).shape;
  const bool three =
      w.size() == 4 && w[2] == 3 && w[3] == 3 && AllOnes(node.attrs.IntList("strides"));
  return three && w[0] >= 16 && w[1] >= 16 ? rates.dense_3x3 : 0.9;
}

}  // namespace

double RooflinePredictor::GraphSeconds(const Graph& graph) const {
  const std::vector<bool> weights = ConstantExpressions(graph);
  double seconds = 0;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (weights[id] || IsInput(node) || node.op->is_view) continue;
    const Cost cost = WithView(graph, static_cast<int32_t>(id),
                               [&](const NodeView& view) { return CostOf(*node.op, view); });
    seconds += OperatorSeconds(cost.flops / Efficiency(graph, node, rates_), cost.bytes);
  }
  return seconds;
}

double RooflinePredictor::OperatorSeconds(double flops, double bytes) const {
  return std::max(flops / rates_.flops, bytes / rates_.bytes) + rates_.operator_seconds;
}

std::string RooflinePredictor::Key() const {
  return absl::StrFormat("%a %a %a %a", rates_.flops, rates_.bytes, rates_.operator_seconds,
                         rates_.dense_3x3);
}

const Predictor& DefaultPredictor() {
  static const auto* predictor = new RooflinePredictor(DeviceRates{});
  return *predictor;
}

}  // namespace mendel
