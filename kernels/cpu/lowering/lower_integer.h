// oneDNN's primitives and native kernels for products of integers.
#ifndef MENDEL_KERNELS_CPU_LOWERING_LOWER_INTEGER_H_
#define MENDEL_KERNELS_CPU_LOWERING_LOWER_INTEGER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "kernels/cpu/lowering/integer_product.h"

namespace mendel::cpu {

/// nullopt where oneDNN has only reference code.
std::optional<Chosen> ChooseInteger(const Graph& graph, int32_t root,
                                    const IntegerProduct& product);

/// The problem of a native kernel, without places; null where it does not suit.
std::shared_ptr<const IntegerConv> NativeInteger(const Graph& graph, int32_t root,
                                                 const IntegerProduct& product);
/// The product's weights as its native kernel takes them.
StoredIntegers StoredOf(const Graph& graph, int32_t root, const IntegerProduct& product);
absl::Status LowerNativeInteger(Lowering& lowering, const Group& group);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_LOWER_INTEGER_H_
