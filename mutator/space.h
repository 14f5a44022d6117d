// Moves between batch and space and between space and residue classes, as views (Reshape, Transpose, Reshape).
#ifndef MENDEL_MUTATOR_SPACE_H_
#define MENDEL_MUTATOR_SPACE_H_

#include <cstdint>
#include <vector>

#include "graph/emitter.h"

namespace mendel {

/// [N, C, .., H, ..] -> [N/k, C, .., k*H, ..]: k images one under another along tensor dimension `dim`.
ValueId StackBatch(Emitter& e, ValueId x, int64_t dim, int64_t k);
/// The inverse: [N, C, .., k*H, ..] -> [N*k, C, .., H, ..].
ValueId UnstackBatch(Emitter& e, ValueId x, int64_t dim, int64_t k);

/// Positions t*d + r of each spatial dimension (factors[d], 1 where nothing is to be done) regrouped by residue:
/// [N, C, H, W] -> [d_h * d_w * N, C, H/d_h, W/d_w].
ValueId ResiduesToBatch(Emitter& e, ValueId x, const Ints& factors);
ValueId BatchToResidues(Emitter& e, ValueId x, const Ints& factors);
/// The same regrouping within space: position t*d + r goes to r*(H/d) + t.
ValueId ResiduesStacked(Emitter& e, ValueId x, const Ints& factors);
ValueId ResiduesUnstacked(Emitter& e, ValueId x, const Ints& factors);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_SPACE_H_
