// Rows of a matrix that all its rows are combinations of, with the coefficients, in a field of 60
// bits.
#ifndef MENDEL_MUTATOR_ROW_BASIS_H_
#define MENDEL_MUTATOR_ROW_BASIS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/prime_field.h"
#include "mutator/low_rank.h"

namespace mendel {

/// The field of RowBasis.
const PrimeField& RowBasisField();

struct RowBasis {
  std::vector<size_t> rows;  ///< rank many row numbers, in the order of their largest elements
  /// coefficients[i][k]: of row rows[k] in row i.
  std::vector<std::vector<uint64_t>> coefficients;
};

/// True when the matrix has a higher rank than `max_rank` by an elimination in doubles, as most
/// trained weights have. The elimination sees an evenly spread part, and every pivot is far above
/// the rounding that earlier pivots let expect. This bound is a heuristic: a wrong "true" loses a
/// mutant and nothing else. False says nothing. `element` is called at most once for each element
/// of the part.
bool HasHigherRank(size_t rows, size_t columns,
                   absl::FunctionRef<double(size_t row, size_t column)> element, size_t max_rank);

/// False where a few columns show that the rank is above `max_rank`, or that some row is no
/// combination of others with fractions (AsFraction). It is heuristic where rounding or the choice
/// of columns deceives it: a wrong "false" loses a mutant and nothing else.
bool MayBeFactored(const StoredMatrix& matrix, size_t max_rank);

/// Nullopt when the rank is 0 or above `max_rank`. Takes rows * rank * columns products.
std::optional<RowBasis> FindRowBasis(const StoredMatrix& matrix, size_t max_rank);

/// The number m / 2^s, |m| <= 2^24 and s <= 24, that `residue` stands for; nullopt when there is
/// none.
std::optional<double> AsDyadic(uint64_t residue);

/// Numerator and denominator below 2^28 in magnitude, or nullopt (rational reconstruction; unique,
/// since the prime is above 2^57).
std::optional<std::pair<int64_t, int64_t>> AsFraction(uint64_t residue);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_ROW_BASIS_H_
