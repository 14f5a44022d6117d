// Oracles of operators whose arithmetic the field cannot follow: run-time integers, sorting,
// indices that are data (docs/verifier.md, "Evaluation").
#ifndef MENDEL_VERIFIER_OPAQUE_H_
#define MENDEL_VERIFIER_OPAQUE_H_

#include <array>
#include <cstdint>
#include <span>

#include "base/prime_field.h"
#include "graph/op_definition.h"

namespace mendel {

/// Random elements `out` of output `output` that follow from `key`, operator, attributes and
/// operands: from as few operands an element as are known to decide it, so that an oracle agrees
/// with oracles of parts of its result.
///
///  - An elementwise operator (RestrictElementwise) is one function of the operands of each
///  element.
///  - An operator that computes a box of its output from boxes of its inputs
///  (OpDefinition::restrict) is, in the smallest boxes
///    that it can be cut into, a function of the attributes and contents of those it reads: that is
///    restrict's contract. Not where reading them all would cost far more than reading the inputs
///    once.
///  - Any other is a function of everything.
///
/// Needs a FieldScope.
void FillOpaque(std::array<uint64_t, 2> key, const OpDefinition& op, const NodeView& node,
                const Reader<Fp>& in, int output, std::span<Fp> out);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_OPAQUE_H_
