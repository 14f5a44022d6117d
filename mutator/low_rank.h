// Stored weights that are exactly products of smaller matrices: repeated, scaled and combined rows,
// products of small integers.
#ifndef MENDEL_MUTATOR_LOW_RANK_H_
#define MENDEL_MUTATOR_LOW_RANK_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace mendel {

/// The stored tensor of `value` where it is a literal of f32 with more than one element (a symbol's
/// numbers are not the verifier's to use); else null.
const Tensor* LiteralOperand(const Graph& graph, ValueId value);

/// Weights of a convolution: a literal, or one whose outputs are scaled by a constant, as folding a
/// batch normalization leaves it.
struct StoredKernel {
  const Tensor* values = nullptr;  ///< null: neither
  std::optional<ValueId> scale;    ///< [O, 1, ..]
};
StoredKernel StoredKernelOf(const Graph& graph, ValueId value);

/// Row-major; numbers that f32 holds exactly.
struct StoredMatrix {
  size_t rows = 0, columns = 0;
  std::vector<double> values;
};

/// left * right, in rational arithmetic, is the matrix.
struct MatrixFactors {
  StoredMatrix left, right;
};

/// MatrixFactors through the rank of `matrix`, at least 1 and at most `max_rank`, all of whose
/// elements f32 holds exactly; nullopt when the rank is higher or such factors are not found. Rows
/// of the matrix serve as `right` where the others are whole or dyadic combinations of them,
/// columns as `left` likewise, and else a short basis of the lattice that the rows of a matrix of
/// whole numbers span. MatrixFactors whose products cancel (sum of magnitudes above 64 times the
/// largest element) are refused. The rank and the combinations are found modulo one prime of 60
/// bits: for the verifier to prove.
std::optional<MatrixFactors> FactorExactly(const StoredMatrix& matrix, size_t max_rank);

/// FactorExactly of several matrices through one rank, the highest of theirs, where the others'
/// factors are filled with zeros; a matrix of zeros has any rank. Nullopt when one is not found, or
/// all are zero.
std::optional<std::vector<MatrixFactors>> FactorAllExactly(
    const std::vector<StoredMatrix>& matrices, size_t max_rank);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_LOW_RANK_H_
