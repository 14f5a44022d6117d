#include "mutator/row_basis.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mendel {
namespace {

constexpr uint64_t kPrime = (uint64_t{1} << 60) - 93;
constexpr int64_t kLargestEntry = int64_t{1} << 24, kFraction = int64_t{1} << 28;
constexpr size_t kSpareColumns = 8;
constexpr double kNearRounding = 1e-9;    // of the largest number of an elimination
constexpr double kSmallPivot = 1.0 / 16;  // rows that nearly depend: what follows is less exact

int64_t Centered(uint64_t residue) {
  return residue > kPrime / 2 ? -static_cast<int64_t>(kPrime - residue)
                              : static_cast<int64_t>(residue);
}

/// An echelon form that grows row by row; each of its rows remembers the combination of given rows
/// that it is.
class Echelon {
 public:
  explicit Echelon(size_t max_rank) : max_rank_(max_rank) {}

  size_t rank() const { return pivots_.size(); }

  /// The coefficients of `row` in the rows that were new so far, itself included when it is; false
  /// when the rank gets too high.
  bool Add(std::vector<uint64_t> row, std::vector<uint64_t>& coefficients, bool& fresh) {
    const PrimeField& field = RowBasisField();
    coefficients.assign(rank(), 0);
    for (size_t k = 0; k < rank(); ++k) {
      const uint64_t factor = row[pivots_[k]];
      if (factor == 0) continue;
      const uint64_t minus = field.Neg(factor);
      for (size_t j = pivots_[k]; j < row.size(); ++j)
        row[j] = field.Add(row[j], field.Mul(minus, rows_[k][j]));
      for (size_t t = 0; t <= k; ++t)
        coefficients[t] = field.Add(coefficients[t], field.Mul(factor, combinations_[k][t]));
    }
    const auto pivot =
        std::find_if(row.begin(), row.end(), [](uint64_t value) { return value != 0; });
    fresh = pivot != row.end();
    if (!fresh) return true;
    if (rank() == max_rank_) return false;
    const uint64_t inverse = field.Inverse(*pivot);
    pivots_.push_back(static_cast<size_t>(pivot - row.begin()));
    for (uint64_t& value : row) value = field.Mul(value, inverse);
    rows_.push_back(std::move(row));
    combinations_.emplace_back();
    for (const uint64_t coefficient : coefficients)
      combinations_.back().push_back(field.Mul(field.Neg(coefficient), inverse));
    combinations_.back().push_back(inverse);
    coefficients.assign(rank(), 0);
    coefficients.back() = 1;
    return true;
  }

 private:
  size_t max_rank_;
  std::vector<size_t> pivots_;
  std::vector<std::vector<uint64_t>> rows_, combinations_;
};

/// `count` of `all` numbers, evenly spread.
std::vector<size_t> Spread(size_t all, size_t count) {
  std::vector<size_t> numbers;
  for (size_t k = 0; k < std::min(all, count); ++k)
    numbers.push_back(k * all / std::min(all, count));
  return numbers;
}

/// Row numbers, those with small elements first: what is a multiple of something comes behind it.
std::vector<size_t> BySize(const StoredMatrix& matrix) {
  std::vector<double> largest(matrix.rows, 0);
  for (size_t i = 0; i < matrix.rows; ++i) {
    for (size_t j = 0; j < matrix.columns; ++j)
      largest[i] = std::max(largest[i], std::abs(matrix.values[i * matrix.columns + j]));
  }
  std::vector<size_t> order(matrix.rows);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return largest[a] < largest[b]; });
  return order;
}

}  // namespace

const PrimeField& RowBasisField() {
  static const PrimeField field(kPrime);
  return field;
}

bool HasHigherRank(size_t rows, size_t columns,
                   absl::FunctionRef<double(size_t row, size_t column)> element, size_t max_rank) {
  if (std::min(rows, columns) <= max_rank) return false;
  const std::vector<size_t> across = Spread(columns, max_rank + kSpareColumns);
  std::vector<std::vector<double>> echelon;  // each row divided by its pivot
  std::vector<size_t> pivots;
  double exactness = 1;  // a division by a small pivot enlarges the rounding of what comes later
  for (const size_t i : Spread(rows, max_rank + 1)) {
    std::vector<double> row;
    double largest = 0;
    for (const size_t j : across) {
      row.push_back(element(i, j));
      largest = std::max(largest, std::abs(row.back()));
    }
    for (size_t k = 0; k < echelon.size(); ++k) {
      const double factor = row[pivots[k]];
      largest = std::max(largest, std::abs(factor));
      for (size_t j = 0; j < row.size(); ++j) row[j] -= factor * echelon[k][j];
    }
    const auto pivot = std::max_element(
        row.begin(), row.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
    const double divisor = *pivot;
    if (!(std::abs(divisor) * exactness > kNearRounding * largest)) return false;  // NaN, too
    exactness *= std::min(1.0, std::abs(divisor) / (kSmallPivot * largest));
    pivots.push_back(static_cast<size_t>(pivot - row.begin()));
    for (double& value : row) value /= divisor;
    echelon.push_back(std::move(row));
  }
  return true;
}

namespace {

/// The basis by these columns, rows in this order; nullopt when their rank is above `max_rank`.
std::optional<RowBasis> BasisOf(const StoredMatrix& matrix, const std::vector<size_t>& order,
                                const std::vector<size_t>& columns, size_t max_rank) {
  RowBasis basis;
  basis.coefficients.resize(matrix.rows);
  Echelon echelon(max_rank);
  for (const size_t i : order) {
    std::vector<uint64_t> row;
    row.reserve(columns.size());
    for (const size_t j : columns)
      row.push_back(RowBasisField().FromDouble(matrix.values[i * matrix.columns + j]));
    bool fresh = false;
    if (!echelon.Add(std::move(row), basis.coefficients[i], fresh)) return std::nullopt;
    if (fresh) basis.rows.push_back(i);
  }
  return basis;
}

}  // namespace

bool MayBeFactored(const StoredMatrix& matrix, size_t max_rank) {
  const auto element = [&](size_t i, size_t j) { return matrix.values[i * matrix.columns + j]; };
  if (max_rank == 0 || HasHigherRank(matrix.rows, matrix.columns, element, max_rank)) return false;
  const auto basis =
      BasisOf(matrix, BySize(matrix), Spread(matrix.columns, max_rank + kSpareColumns), max_rank);
  if (!basis.has_value()) return false;
  for (const std::vector<uint64_t>& coefficients : basis->coefficients) {
    for (const uint64_t coefficient : coefficients) {
      if (!AsFraction(coefficient).has_value()) return false;
    }
  }
  return true;
}

std::optional<RowBasis> FindRowBasis(const StoredMatrix& matrix, size_t max_rank) {
  auto basis = BasisOf(matrix, BySize(matrix), Spread(matrix.columns, matrix.columns), max_rank);
  if (!basis.has_value() || basis->rows.empty()) return std::nullopt;
  for (std::vector<uint64_t>& coefficients : basis->coefficients)
    coefficients.resize(basis->rows.size(), 0);
  return basis;
}

std::optional<double> AsDyadic(uint64_t residue) {
  for (int shift = 0; shift <= 24; ++shift) {
    const int64_t value = Centered(RowBasisField().Mul(residue, uint64_t{1} << shift));
    if (std::abs(value) <= kLargestEntry) return std::ldexp(static_cast<double>(value), -shift);
  }
  return std::nullopt;
}

std::optional<std::pair<int64_t, int64_t>> AsFraction(uint64_t residue) {
  // The remainders of Euclid's algorithm on (prime, residue): each is residue times the coefficient
  // beside it.
  int64_t before = static_cast<int64_t>(kPrime), now = static_cast<int64_t>(residue), of_before = 0,
          of_now = 1;
  while (now >= kFraction) {
    const int64_t quotient = before / now;
    before = std::exchange(now, before - quotient * now);
    of_before = std::exchange(of_now, of_before - quotient * of_now);
  }
  if (std::abs(of_now) >= kFraction) return std::nullopt;
  const int64_t divisor = std::gcd(now, of_now) * (of_now < 0 ? -1 : 1);
  return std::pair(now / divisor, of_now / divisor);
}

}  // namespace mendel
