// oneDNN's primitives for products of integers.
#ifndef MENDEL_KERNELS_CPU_LOWERING_LOWER_INTEGER_H_
#define MENDEL_KERNELS_CPU_LOWERING_LOWER_INTEGER_H_

#include <cstdint>
#include <optional>

#include "kernels/cpu/lowering/integer_product.h"

namespace mendel::cpu {

/// nullopt where oneDNN has only reference code.
std::optional<Chosen> ChooseInteger(const Graph& graph, int32_t root,
                                    const IntegerProduct& product);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_LOWER_INTEGER_H_
