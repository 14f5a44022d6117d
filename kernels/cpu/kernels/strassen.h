// Products of positions and one constant matrix with seven multiplications for eight (Strassen
// 1969): positions, input and output channels are each cut in halves,
//
//   M1 = (A11 + A22)(B11 + B22)   M2 = (A21 + A22) B11   M3 = A11 (B12 - B22)   M4 = A22 (B21 -
//   B11) M5 = (A11 + A12) B22          M6 = (A21 - A11)(B11 + B12)                   M7 = (A12 -
//   A22)(B21 + B22) C11 = M1 + M4 - M5 + M7   C12 = M3 + M5   C21 = M2 + M4   C22 = M1 - M2 + M3 +
//   M6
//
// The sums of B are formed in double when the weights are packed and rounded once. Errors are
// relative to the largest elements of the operands, not to those of a row and a column: not for
// strict numerics. An infinity becomes NaN in other outputs, too.
#ifndef MENDEL_KERNELS_CPU_KERNELS_STRASSEN_H_
#define MENDEL_KERNELS_CPU_KERNELS_STRASSEN_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/cpu/kernels/pointwise.h"
#include "kernels/cpu/memory/weight_view.h"

namespace mendel::cpu {

inline constexpr std::string_view kNativeStrassen = "strassen-own";

/// One product, cut into blocks of positions, parts of the depth, and groups of panels. The
/// products of a group wait for each other.
struct StrassenPlan {
  PointwisePlan product;  ///< isa, shape and strides; neither phases nor a prepared source
  const DirectIsa* isa = nullptr;
  int64_t half_in = 0;   ///< channels of the first half: whole vectors
  int64_t half_out = 0;  ///< likewise
  int64_t width = 0;     ///< channels of a full panel, of either half
  int64_t panels = 0;
  int64_t group = 1;  ///< panels
  int64_t depth = 0;  ///< channels of a half at once
  int64_t block = 2;  ///< positions
  int64_t row = 0;    ///< floats between factors of neighboring pairs

  int64_t PanelVectors(int64_t panel) const;
  int64_t Parts() const { return (half_in + depth - 1) / depth; }
  int64_t WeightFloats() const { return 7 * half_in * half_out; }
  int64_t FactorFloats() const { return block / 2 * row; }
  int64_t ProductFloats() const { return block / 2 * width * group; }
  int64_t ScratchBytes() const {
    return product.shares * 7 * (FactorFloats() + ProductFloats()) *
           static_cast<int64_t>(sizeof(float));
  }
};

/// `product` after CutPointwise.
StrassenPlan CutStrassen(const PointwisePlan& product);

/// `weights` (of one phase) and `scale` as in PackPointwiseWeights. In the current ThreadScope.
void PackStrassenWeights(const StrassenPlan& plan, const WeightMatrix& weights,
                         const std::vector<double>& scale, float* to);

/// Runs in the current ThreadScope. `scratch` has ScratchBytes() bytes and lies on a 64-byte
/// boundary.
void RunStrassen(const StrassenPlan& plan, const PointwiseOperands& operands,
                 const WinogradEpilogue& epilogue, float* scratch);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_STRASSEN_H_
