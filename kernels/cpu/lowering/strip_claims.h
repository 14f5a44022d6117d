// Strip claims are the parts of a Patch that the strip kernels compute in place (strip.h):
// convolutions with their fused operations that only the Patch reads. Results and inputs may be cut
// out of larger values. Sums of several convolutions and of the patched value are included.
#ifndef MENDEL_KERNELS_CPU_LOWERING_STRIP_CLAIMS_H_
#define MENDEL_KERNELS_CPU_LOWERING_STRIP_CLAIMS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/cpu/lowering/native_post_ops.h"

namespace mendel::cpu {

/// A value cut out of `root`: the element at i is root's at begin + i * step.
struct CutValue {
  ValueId root;
  Shape begin;
  Shape step;
};

/// One convolution of a piece.
struct StripTermClaim {
  int32_t conv = -1;
  CutValue source;
  std::vector<double> scale;  ///< as Epilogue::scale
};

/// One box of a Patch: outputs `begin` and following of the sum of `terms`.
struct StripPiece {
  size_t operand = 0;  ///< of the Patch; its box is number operand - 1
  Shape begin;
  std::vector<StripTermClaim> terms;
  std::optional<CutValue> residual;  ///< in the box's coordinates
  std::vector<double> bias;          ///< empty: none
  NativePostOps post_ops;
  std::vector<int32_t> nodes;  ///< that the piece computes
};

/// StripClaim says how one Patch is computed.
struct StripClaim {
  std::vector<StripPiece> pieces;
  std::string declined;  ///< why some operand is computed on its own and copied; empty: none is
};

struct StripClaims {
  std::map<int32_t, StripClaim> by_patch;  ///< every f32 Patch
  std::set<int32_t> nodes;                 ///< that need no steps of their own
};

/// `groups`: FindGroups of the lowering's graph.
StripClaims FindStripClaims(Lowering& lowering, const std::vector<std::optional<Group>>& groups);

/// Lowers the Patch `patch`: pieces by strips in place, other operands copied. The patched value is
/// not copied when nothing else reads it. Any dtype.
void LowerPatch(Lowering& lowering, int32_t patch, const StripClaim& claim);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_STRIP_CLAIMS_H_
