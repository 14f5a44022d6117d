#include "bench/roofline.h"

#include <algorithm>
#include <cstdlib>

namespace mendel {
namespace {

/// Outputs of a tile along a dimension: the number behind the colon of "winograd:4x3" and
/// "winograd-own:4"; 0 for other algorithms.
int64_t TileOutputs(const std::string& algorithm) {
  const size_t colon = algorithm.find(':');
  return algorithm.compare(0, 8, "winograd") == 0 && colon != std::string::npos
             ? std::atoll(algorithm.c_str() + colon + 1)
             : 0;
}

/// Multiplications of m outputs of `taps` taps at a stride: each phase of the taps is a F(m, .) of
/// its own.
int64_t TileProducts(int64_t m, int64_t taps, int64_t stride) {
  int64_t products = 0;
  for (int64_t phase = 0; phase < std::min(stride, taps); ++phase)
    products += m + (taps - phase + stride - 1) / stride - 1;
  return products;
}

}  // namespace

Roofline RooflineOf(const Graph& graph, int32_t node, const std::string& algorithm,
                    const MachinePeak& core, int threads) {
  const Node& contraction = graph.node(node);
  double operations = WithView(
      graph, node, [&](const NodeView& view) { return CostOf(*contraction.op, view).flops; });
  double weight_bytes = 0;
  if (contraction.inputs.size() > 1 &&
      (contraction.op->name == "Conv" || contraction.op->name == "MatMul")) {
    const TensorType& weights = graph.type(contraction.inputs[1]);
    weight_bytes = static_cast<double>(ByteSize(weights));
    const int64_t m = TileOutputs(algorithm);
    for (size_t d = 2; m > 0 && d < weights.shape.size(); ++d) {
      const int64_t taps = weights.shape[d];
      if (taps == 1) continue;
      const int64_t stride = contraction.attrs.IntList("strides")[d - 2];
      const auto products = static_cast<double>(TileProducts(m, taps, stride));
      operations *= products / static_cast<double>(m * taps);
      weight_bytes *= products / static_cast<double>(taps);
    }
  }
  if (algorithm == "strassen-own") operations *= 7.0 / 8;
  return {operations / (core.flops * threads), weight_bytes / core.bytes};
}

}  // namespace mendel
