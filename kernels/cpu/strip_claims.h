// Which parts of a Patch the strip kernels compute in place (strip.h): convolutions with what is fused to them, read by nothing
// but the Patch, cut out of larger results or not, their inputs cut out of larger values or not, sums of several convolutions and
// of what is patched.
#ifndef MENDEL_KERNELS_CPU_STRIP_CLAIMS_H_
#define MENDEL_KERNELS_CPU_STRIP_CLAIMS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/cpu/own_posts.h"

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
  OwnPosts posts;
  std::vector<int32_t> nodes;  ///< that the piece computes
};

/// What becomes of one Patch.
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

/// The Patch `patch`: pieces by strips in place, other operands copied. Nothing is copied of what is patched when no other reader
/// needs it. Any dtype.
void LowerPatch(Lowering& lowering, int32_t patch, const StripClaim& claim);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_STRIP_CLAIMS_H_
