// Products of quantized operands that run in integers: numerics class int8.
#ifndef MENDEL_KERNELS_CPU_LOWERING_INTEGER_PRODUCT_H_
#define MENDEL_KERNELS_CPU_LOWERING_INTEGER_PRODUCT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/lowering/contraction.h"
#include "kernels/cpu/lowering/fuse.h"
#include "kernels/cpu/lowering/lowering.h"

namespace mendel::cpu {

/// True where oneDNN sums products of u8 and i8 in 32 bits without saturating in between (VNNI).
/// Other machines multiply in f32, which is exact for small sums, and was faster.
bool SumsInt8Exactly();

/// The sums are integers: sum of (source - source zero) * weights. Then, in f32, with one number a
/// channel or none: (sum + bias) * scale, the activations and, for a quantized result, rounding,
/// zero point and saturation.
struct IntegerProduct {
  std::vector<int32_t> nodes;  ///< ascending; the last one's value is the result
  ValueId source;              ///< codes, u8 or i8
  int32_t source_zero = 0;
  std::optional<ValueId> runtime_zero;  ///< i32, one number; then source_zero is 0
  std::vector<int8_t> weights;          ///< as stored in the graph, row-major
  std::vector<float> bias, scale;
  std::vector<Activation> activations;
  bool rounds = false;  ///< halves to even before an odd zero point is added
  int32_t result_zero = 0;
  DType result = DType::kF32;    ///< f32, u8 or i8
  std::optional<Chosen> chosen;  ///< the primitive
};

/// The product that node `root` begins, with the nodes after it that it computes; null when it does
/// not run in integers. Nodes with an `owner` of at least 0 are taken.
std::shared_ptr<const IntegerProduct> FindIntegerProduct(const Graph& graph, Folded& folded,
                                                         const std::vector<int32_t>& owner,
                                                         int32_t root);
/// Values that the product reads.
std::vector<ValueId> OperandsOf(const IntegerProduct& product);

absl::Status LowerIntegerProduct(Lowering& lowering, const Group& group);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_INTEGER_PRODUCT_H_
