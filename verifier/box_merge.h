// Disjoint boxes made few.
#ifndef MENDEL_VERIFIER_BOX_MERGE_H_
#define MENDEL_VERIFIER_BOX_MERGE_H_

#include <vector>

#include "graph/types.h"

namespace mendel {

/// The same positions as the disjoint `boxes` in fewer disjoint boxes: neighbours with one common face are joined, innermost
/// dimension first, until none is left. Sorted; the result depends only on the set of positions and how it was cut.
std::vector<Box> MergeTouching(std::vector<Box> boxes);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_BOX_MERGE_H_
