// Activations as exporters spell them out: Gelu as x * (1 + erf(x / sqrt 2)) / 2, or with
// tanh(sqrt(2 / pi) * (x + 0.044715 x^3)) instead of erf; HardSwish as x * clip(x + 3, 0, 6) / 6,
// or as x * HardSigmoid(x).
#ifndef MENDEL_KERNELS_CPU_LOWERING_DECOMPOSED_ACTIVATION_H_
#define MENDEL_KERNELS_CPU_LOWERING_DECOMPOSED_ACTIVATION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/cpu/lowering/fold.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace mendel::cpu {

struct DecomposedActivation {
  std::vector<int32_t> nodes;  ///< ascending, the last one's value being the activation of x;
                               ///< nothing else reads the others or x
  dnnl::algorithm algorithm{};
};

/// Finds the activation of `x` where `x` is used for nothing else. Factors may come in any order,
/// divisions may replace products, and x*x*x may replace a power. Constants may differ from the
/// definition's by one part in a million, which is how exporters round them.
std::optional<DecomposedActivation> FindDecomposedActivation(const Graph& graph, Folded& folded,
                                                             ValueId x);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_DECOMPOSED_ACTIVATION_H_
