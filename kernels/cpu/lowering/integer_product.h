// Products of quantized operands that run in integers: numerics class int8.
#ifndef MENDEL_KERNELS_CPU_LOWERING_INTEGER_PRODUCT_H_
#define MENDEL_KERNELS_CPU_LOWERING_INTEGER_PRODUCT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/kernels/integer_conv.h"
#include "kernels/cpu/lowering/contraction.h"
#include "kernels/cpu/lowering/fuse.h"
#include "kernels/cpu/lowering/lowering.h"

namespace mendel::cpu {

/// True where oneDNN sums products of u8 and i8 in 32 bits without saturating in between (VNNI).
/// Anything else runs by the kernels of integer_conv.h: on other machines, for larger weights, and
/// for sums that the graph itself contains.
bool SumsInt8Exactly();
/// True where products of quantized operands run in integers: from AVX2 on.
bool MultipliesInt8();

/// Stored weights of a product, whole numbers times a scale a channel.
struct IntegerOperand {
  std::vector<int16_t> integers;  ///< in the graph's order; magnitudes up to 255
  std::vector<double> scales;
};
/// The operands of a graph by their values, null where they are none. The steps of an unrolled
/// recurrence share one, and its packed form.
struct IntegerOperands {
  std::map<ValueId, std::shared_ptr<const IntegerOperand>> known;
  std::map<ValueId, std::shared_ptr<const PackedIntegers>> packed;  ///< of products of matrices
};

/// The sums are integers: sum of (source - source zero) * weights. An i32 result is these. For any
/// other, f32 follows, with one number a channel or none: (sum + bias) * scale, the activations
/// and, for a quantized result, rounding, zero point and saturation.
struct IntegerProduct {
  std::vector<int32_t> nodes;  ///< ascending; the last one's value is the result
  ValueId source;              ///< codes, u8 or i8
  int32_t source_zero = 0;
  std::optional<ValueId> runtime_zero;  ///< i32, one number; then source_zero is 0
  std::shared_ptr<const IntegerOperand> weights;
  std::vector<float> bias, scale;
  std::vector<Activation> activations;
  bool rounds = false;  ///< halves to even before an odd zero point is added
  int32_t result_zero = 0;
  DType result = DType::kF32;                 ///< i32, f32, u8 or i8
  std::optional<Chosen> chosen;               ///< oneDNN's primitive
  std::shared_ptr<const IntegerConv> native;  ///< or the problem of a native kernel, without places
  std::shared_ptr<const PackedIntegers> packed;  ///< with its weights
};

/// The product that node `root` begins, with the nodes after it that it computes; null when it does
/// not run in integers. Without `scaled` it has the root alone, whose value is i32: such sums are
/// what the operator means, in any numerics class. Nodes with an `owner` of at least 0 are taken.
std::shared_ptr<const IntegerProduct> FindIntegerProduct(const Graph& graph, Folded& folded,
                                                         const std::vector<int32_t>& owner,
                                                         int32_t root, bool scaled,
                                                         IntegerOperands& operands);
/// Values that the product reads.
std::vector<ValueId> OperandsOf(const IntegerProduct& product);

absl::Status LowerIntegerProduct(Lowering& lowering, const Group& group);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_INTEGER_PRODUCT_H_
