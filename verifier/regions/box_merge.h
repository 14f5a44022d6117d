// Disjoint boxes made few.
#ifndef MENDEL_VERIFIER_REGIONS_BOX_MERGE_H_
#define MENDEL_VERIFIER_REGIONS_BOX_MERGE_H_

#include <vector>

#include "graph/types.h"

namespace mendel {

/// The same positions as the disjoint `boxes` in few disjoint boxes. Neighbors with one common face
/// are joined, as they are and cut along all their faces, in every order of dimensions; boxes
/// grown from corners compete. The fewest boxes win; no minimum is promised (the problem is
/// NP-hard from three dimensions on). Sorted; the result depends on the set of positions alone,
/// unless it is too fragmented to be cut.
std::vector<Box> MergeTouching(std::vector<Box> boxes);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_BOX_MERGE_H_
