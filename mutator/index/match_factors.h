// Products that are equal but for the names of their sums.
#ifndef MENDEL_MUTATOR_INDEX_MATCH_FACTORS_H_
#define MENDEL_MUTATOR_INDEX_MATCH_FACTORS_H_

#include <map>
#include <optional>
#include <vector>

#include "mutator/index/expression.h"

namespace mendel {

/// Names of the sums of `theirs` in `ours` with which the products are equal; nullopt when there
/// are none. `any_tensor`: the number of a factor of `ours` whose tensor may differ, or -1; `other`
/// gets the tensor that stands there in `theirs`.
std::optional<std::map<Iterator, Iterator>> MatchFactors(const std::vector<Factor>& ours,
                                                         const std::vector<Factor>& theirs,
                                                         const std::vector<Iterator>& our_sums,
                                                         const std::vector<Iterator>& their_sums,
                                                         const Extents& extents,
                                                         int any_tensor = -1, int* other = nullptr);

/// Renames iterators in every index.
void RenameIterators(std::vector<Factor>& factors, const std::map<Iterator, Iterator>& names);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_MATCH_FACTORS_H_
