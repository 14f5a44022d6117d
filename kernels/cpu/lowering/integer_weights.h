// Constant weights as whole numbers times scales.
#ifndef MENDEL_KERNELS_CPU_LOWERING_INTEGER_WEIGHTS_H_
#define MENDEL_KERNELS_CPU_LOWERING_INTEGER_WEIGHTS_H_

#include <optional>
#include <vector>

#include "kernels/cpu/lowering/fold.h"

namespace mendel::cpu {

/// Element k is whole[k] * scale[k], exactly; row-major.
struct IntegerWeights {
  std::vector<double> whole, scale;
};
/// nullopt when the value is not an expression of integers, their differences, scales and moves of
/// elements.
std::optional<IntegerWeights> FindIntegerWeights(const Graph& graph, Folded& folded, ValueId value);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_INTEGER_WEIGHTS_H_
