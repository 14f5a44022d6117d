// Values of which only the sign of a zero is unequal in two programs: x and 0 + x at x = -0.
#ifndef MENDEL_VERIFIER_DEFINEDNESS_ZERO_SIGNS_H_
#define MENDEL_VERIFIER_DEFINEDNESS_ZERO_SIGNS_H_

#include <set>

#include "verifier/axioms/signs.h"
#include "verifier/certify/numbering.h"

namespace mendel {

/// The merges of values that a divisor is computed of which may be zero of either sign, if a
/// function reads the quotient: it may make numbers of both infinities. Formal equality does not
/// justify these merges.
std::set<Origin> MergesOfZeros(const Numbering& numbering);

/// A node whose values have this sign makes no -0: integers, sums of products, which begin at +0,
/// and sums that are never negative.
bool IsNeverNegativeZero(const Node& node, Sign sign);

/// There is such a divisor in one of the programs.
bool ReadsSignsOfZeros(const Numbering& numbering);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_DEFINEDNESS_ZERO_SIGNS_H_
