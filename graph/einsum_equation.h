// Equations of Einsum: "ij,jk->ik", or without an arrow the labels that occur once, in alphabetical
// order. Labels are letters; one repeated within an operand takes the diagonal. Labels missing from
// the output are summed over.
#ifndef MENDEL_GRAPH_EINSUM_EQUATION_H_
#define MENDEL_GRAPH_EINSUM_EQUATION_H_

#include <array>
#include <string>

#include "absl/status/statusor.h"

namespace mendel {

struct EinsumEquation {
  std::array<std::string, 2> operands;  ///< a label a dimension
  std::string output;
};

/// InvalidArgument unless it is an equation of two operands.
absl::StatusOr<EinsumEquation> ParseEinsum(const std::string& text);

/// Labels by role. A label of the output belongs to the batch when both operands have it; all
/// others are summed over.
struct EinsumRoles {
  std::string batch, rows, columns, summed;
  explicit EinsumRoles(const EinsumEquation& equation);
};

}  // namespace mendel

#endif  // MENDEL_GRAPH_EINSUM_EQUATION_H_
