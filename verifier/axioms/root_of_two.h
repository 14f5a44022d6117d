// The square root of 2 as an element of the field: how programs say an algebraic constant exactly.
//
// A program writes Sqrt of the literal 2, and a + b sqrt(2) by products and sums with rationals.
// The verifier pins the oracle of the operator Sqrt at 2 to a field element whose square is 2;
// elsewhere it stays an arbitrary function. Primes are therefore drawn among those modulo which 2
// is a square (docs/verifier.md, "Algebraic constants").
#ifndef MENDEL_VERIFIER_AXIOMS_ROOT_OF_TWO_H_
#define MENDEL_VERIFIER_AXIOMS_ROOT_OF_TWO_H_

#include <cstdint>

#include "base/prime_field.h"
#include "graph/op_definition.h"

namespace mendel {

/// 2 is a square modulo the odd prime.
constexpr bool HasRootOfTwo(uint64_t prime) { return prime % 8 == 1 || prime % 8 == 7; }

/// One of the two field elements whose square is 2, `second` saying which. CHECK-fails when there
/// is none.
uint64_t RootOfTwo(const PrimeField& field, bool second);

/// The operator whose oracle is pinned at 2.
inline bool IsSquareRoot(const OpDefinition& op) { return op.name == "Sqrt"; }

}  // namespace mendel

#endif  // MENDEL_VERIFIER_AXIOMS_ROOT_OF_TWO_H_
