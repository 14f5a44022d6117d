// Which conditions of Where decide whether a value is used at all: a quotient that the original computes only where its denominator
// is not zero is no excuse for one that is always computed (docs/verification.md, section 1, "under the same guard").
#ifndef MENDEL_VERIFIER_GUARDS_H_
#define MENDEL_VERIFIER_GUARDS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "verifier/numbering.h"

namespace mendel {

/// Number of a condition, and the operand of Where that is used under it.
using Guard = std::pair<int32_t, size_t>;
using Guards = std::set<Guard>;

/// Guards that stand on every way from a node to an output of its graph, by node; nullopt where nothing reads it. A guard holds
/// element by element; behind an operator that is not elementwise the original's are unknown (a guard that no plan has) and the
/// plan's are none.
std::vector<std::optional<Guards>> GuardsOf(const Numbering& numbering, Side side);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_GUARDS_H_
