// Moves between batch and space and between space and residue classes, as views (Reshape,
// Transpose, Reshape).
#ifndef MENDEL_MUTATOR_SPACE_H_
#define MENDEL_MUTATOR_SPACE_H_

#include <cstdint>
#include <vector>

#include "graph/emitter.h"

namespace mendel {

/// [N, C, H, W] -> [N/(k_h*k_w), C, k_h*H, k_w*W]: images of a batch as tiles of a larger one, row
/// by row (any spatial rank).
ValueId BatchToSpace(Emitter& e, ValueId x, const Ints& factors);
/// The inverse: [N, C, k_h*H, k_w*W] -> [N*k_h*k_w, C, H, W].
ValueId SpaceToBatch(Emitter& e, ValueId x, const Ints& factors);

/// Tiles that were put into the batch one set of images after the other: [k_h*k_w*N, C, H, W] ->
/// [N, C, k_h*H, k_w*W].
ValueId JoinTiles(Emitter& e, ValueId x, const Ints& factors);

/// Positions t*d + r of each spatial dimension (factors[d], 1 where nothing is to be done)
/// regrouped by residue: [N, C, H, W] -> [d_h * d_w * N, C, H/d_h, W/d_w].
ValueId ResiduesToBatch(Emitter& e, ValueId x, const Ints& factors);
ValueId BatchToResidues(Emitter& e, ValueId x, const Ints& factors);
/// The same regrouping within space: position t*d + r goes to r*(H/d) + t.
ValueId ResiduesStacked(Emitter& e, ValueId x, const Ints& factors);
ValueId ResiduesUnstacked(Emitter& e, ValueId x, const Ints& factors);

/// [A, B, M0*s0, M1*s1..] -> [A, B*s0*s1.., M0, M1..] with the residues in row-major order behind
/// B.
ValueId SpaceToDepth(Emitter& e, ValueId x, const Ints& factors);
/// Position t*s + r of the result is position t of phase r: `phases` of equal shape, row-major over
/// the residues.
ValueId Interleave(Emitter& e, const std::vector<ValueId>& phases, const Ints& factors);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_SPACE_H_
