// Gelu as exporters spell it out: x * (1 + erf(x / sqrt 2)) / 2, or with tanh(sqrt(2 / pi) * (x +
// 0.044715 x^3)) instead of erf.
#ifndef MENDEL_KERNELS_CPU_LOWERING_DECOMPOSED_GELU_H_
#define MENDEL_KERNELS_CPU_LOWERING_DECOMPOSED_GELU_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/cpu/lowering/fold.h"

namespace mendel::cpu {

struct DecomposedGelu {
  std::vector<int32_t>
      nodes;  ///< ascending, the last one's value being Gelu(x); nothing else reads the others or x
  bool tanh = false;
};

/// Finds the Gelu of `x` where `x` is used for nothing else. Factors may come in any order,
/// divisions may replace products, and x*x*x may replace a power. Constants may differ from the
/// definition's by one part in a million, which is how exporters round them.
std::optional<DecomposedGelu> FindDecomposedGelu(const Graph& graph, Folded& folded, ValueId x);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_DECOMPOSED_GELU_H_
