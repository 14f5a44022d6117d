// A tensor's positions listed one by one, as the cheapest operators that yield them.
#ifndef MENDEL_MUTATOR_REGIONS_SELECT_H_
#define MENDEL_MUTATOR_REGIONS_SELECT_H_

#include <vector>

#include "graph/emitter.h"

namespace mendel {

/// False for what an emitter returns after an error.
inline bool IsBuilt(ValueId value) { return value.node >= 0; }
/// All outputs of a copy of `node` with other inputs.
std::vector<ValueId> CopyNode(Emitter& e, const Node& node, std::vector<ValueId> inputs);

/// Positions lists[d] along every dimension d of `x`; `fill` at kAbsent. Views first, then copies.
ValueId SelectPositions(Emitter& e, ValueId x, const std::vector<std::vector<int64_t>>& lists,
                        double fill);

/// Positions `picked` along `axis` of x; zeros at kAbsent.
ValueId PickAlong(Emitter& e, ValueId x, size_t axis, const std::vector<int64_t>& picked);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_REGIONS_SELECT_H_
