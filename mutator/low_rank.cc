#include "mutator/low_rank.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "mutator/parallel.h"
#include "mutator/row_basis.h"

namespace mendel {
namespace {

constexpr double kMaxGrowth = 64, kMaxQuotient = 1 << 20;
constexpr int64_t kMantissa = int64_t{1} << 24, kDenominator = int64_t{1} << 28,
                  kWhole = int64_t{1} << 40;
constexpr int kReductions = 200;

using Integers = std::vector<std::vector<int64_t>>;

StoredMatrix Transposed(const StoredMatrix& matrix) {
  StoredMatrix result{matrix.columns, matrix.rows, std::vector<double>(matrix.values.size())};
  for (size_t i = 0; i < matrix.rows; ++i) {
    for (size_t j = 0; j < matrix.columns; ++j)
      result.values[j * matrix.rows + i] = matrix.values[i * matrix.columns + j];
  }
  return result;
}

/// Rows of the matrix for `right`, where all coefficients are floats.
std::optional<MatrixFactors> ByRows(const StoredMatrix& matrix, const RowBasis& basis) {
  const size_t rank = basis.rows.size();
  MatrixFactors factors{{matrix.rows, rank, {}}, {rank, matrix.columns, {}}};
  for (const std::vector<uint64_t>& coefficients : basis.coefficients) {
    for (const uint64_t coefficient : coefficients) {
      const std::optional<double> value = AsDyadic(coefficient);
      if (!value.has_value()) return std::nullopt;
      factors.left.values.push_back(*value);
    }
  }
  for (const size_t i : basis.rows) {
    const double* row = &matrix.values[i * matrix.columns];
    factors.right.values.insert(factors.right.values.end(), row, row + matrix.columns);
  }
  return factors;
}

/// Whole numbers and the exponent that they are to be multiplied by 2 to; nullopt when they are
/// above 2^24.
std::optional<std::pair<std::vector<int64_t>, int>> AsIntegers(const std::vector<double>& values) {
  int exponent = 1024;
  for (const double value : values) {
    if (value == 0) continue;
    int own = 0;
    int64_t mantissa = static_cast<int64_t>(std::ldexp(std::frexp(value, &own), 53));
    own -= 53;
    for (; mantissa % 2 == 0; mantissa /= 2) ++own;
    exponent = std::min(exponent, own);
  }
  std::vector<int64_t> whole;
  for (const double value : values) {
    const double scaled = std::ldexp(value, -exponent);
    if (!(std::abs(scaled) <= static_cast<double>(kMantissa))) return std::nullopt;
    whole.push_back(static_cast<int64_t>(scaled));
  }
  return std::pair(std::move(whole), exponent);
}

/// The coefficients times their common denominator.
std::optional<std::pair<Integers, int64_t>> CommonDenominator(const RowBasis& basis) {
  std::vector<std::vector<std::pair<int64_t, int64_t>>> fractions;
  int64_t common = 1;
  for (const std::vector<uint64_t>& coefficients : basis.coefficients) {
    fractions.emplace_back();
    for (const uint64_t coefficient : coefficients) {
      const auto fraction = AsFraction(coefficient);
      if (!fraction.has_value()) return std::nullopt;
      common = std::lcm(common, fraction->second);
      if (common > kDenominator) return std::nullopt;
      fractions.back().push_back(*fraction);
    }
  }
  Integers scaled;
  for (const auto& row : fractions) {
    scaled.emplace_back();
    for (const auto& [numerator, denominator] : row)
      scaled.back().push_back(numerator * (common / denominator));
  }
  return std::pair(std::move(scaled), common);
}

/// A triangular basis of the lattice that `vectors` span, which holds `modulus` times every unit
/// vector.
Integers TriangularBasis(const Integers& vectors, int64_t modulus) {
  const size_t rank = vectors[0].size();
  const auto reduced = [&](__int128 value) {
    return static_cast<int64_t>(((value % modulus) + modulus) % modulus);
  };
  Integers basis(rank, std::vector<int64_t>(rank, 0));
  for (size_t k = 0; k < rank; ++k) basis[k][k] = modulus;
  for (std::vector<int64_t> v : vectors) {
    for (int64_t& value : v) value = reduced(value);
    for (size_t k = 0; k < rank; ++k) {
      while (v[k] != 0) {  // Euclid's algorithm on whole rows
        const int64_t quotient = basis[k][k] / v[k];
        for (size_t j = k; j < rank; ++j) {
          const __int128 rest = basis[k][j] - static_cast<__int128>(quotient) * v[j];
          basis[k][j] = std::exchange(v[j], j == k ? static_cast<int64_t>(rest) : reduced(rest));
        }
      }
    }
  }
  return basis;
}

/// `vector` = result * basis, the basis being triangular; nullopt beyond 2^40.
std::optional<std::vector<int64_t>> Coordinates(const std::vector<int64_t>& vector,
                                                const Integers& basis) {
  std::vector<int64_t> result;
  for (size_t k = 0; k < vector.size(); ++k) {
    __int128 rest = vector[k];
    for (size_t j = 0; j < k; ++j) rest -= static_cast<__int128>(result[j]) * basis[j][k];
    if (rest % basis[k][k] != 0) return std::nullopt;
    rest /= basis[k][k];
    if (rest > kWhole || rest < -kWhole) return std::nullopt;
    result.push_back(static_cast<int64_t>(rest));
  }
  return result;
}

/// Shortens the rows of `right` by one another; `left` follows, so that the product stays.
void Shorten(Integers& left, Integers& right) {
  const auto dot = [&](size_t a, size_t b) {
    double sum = 0;
    for (size_t j = 0; j < right[a].size(); ++j)
      sum += static_cast<double>(right[a][j]) * static_cast<double>(right[b][j]);
    return sum;
  };
  bool changed = true;
  for (int round = 0; round < kReductions && changed; ++round) {
    changed = false;
    for (size_t a = 0; a < right.size(); ++a) {
      for (size_t b = 0; b < right.size(); ++b) {
        const double quotient = a == b ? 0 : std::round(dot(a, b) / dot(b, b));
        if (quotient == 0 || std::abs(quotient) > kMaxQuotient) continue;
        const bool large = std::any_of(left.begin(), left.end(), [&](const auto& row) {
          return std::max(std::abs(row[a]), std::abs(row[b])) > kWhole;
        });
        if (large) return;  // no floats in the end
        const int64_t q = static_cast<int64_t>(quotient);
        for (size_t j = 0; j < right[a].size(); ++j) right[a][j] -= q * right[b][j];
        for (std::vector<int64_t>& row : left) row[b] += q * row[a];
        changed = true;
      }
    }
  }
}

std::optional<StoredMatrix> AsFloats(const Integers& rows, int exponent) {
  StoredMatrix matrix{rows.size(), rows[0].size(), {}};
  for (const std::vector<int64_t>& row : rows) {
    for (const int64_t value : row) {
      if (std::abs(value) > kMantissa) return std::nullopt;
      matrix.values.push_back(std::ldexp(static_cast<double>(value), exponent));
    }
  }
  return matrix;
}

/// A short basis of the lattice of the rows of a matrix of whole numbers for `right`: the
/// coefficients are whole.
std::optional<MatrixFactors> ByLattice(const StoredMatrix& matrix, const RowBasis& basis) {
  const auto whole = AsIntegers(matrix.values);
  const auto scaled = whole.has_value() ? CommonDenominator(basis) : std::nullopt;
  if (!scaled.has_value()) return std::nullopt;
  const auto& [vectors, denominator] = *scaled;
  const Integers lattice = TriangularBasis(vectors, denominator);
  Integers left, right(basis.rows.size(), std::vector<int64_t>(matrix.columns, 0));
  for (const std::vector<int64_t>& vector : vectors) {
    auto coordinates = Coordinates(vector, lattice);
    if (!coordinates.has_value()) return std::nullopt;
    left.push_back(*std::move(coordinates));
  }
  for (size_t k = 0; k < right.size(); ++k) {
    for (size_t j = 0; j < matrix.columns; ++j) {
      __int128 sum = 0;
      for (size_t t = k; t < right.size(); ++t)
        sum +=
            static_cast<__int128>(lattice[k][t]) * whole->first[basis.rows[t] * matrix.columns + j];
      if (sum % denominator != 0) return std::nullopt;
      right[k][j] = static_cast<int64_t>(sum / denominator);
    }
  }
  Shorten(left, right);
  auto of_left = AsFloats(left, 0), of_right = AsFloats(right, whole->second);
  if (!of_left.has_value() || !of_right.has_value()) return std::nullopt;
  return MatrixFactors{*std::move(of_left), *std::move(of_right)};
}

/// True where rounding stays as small as in the matrix's own products.
bool Cancels(const StoredMatrix& matrix, const MatrixFactors& factors) {
  double largest = 0;
  for (const double value : matrix.values) largest = std::max(largest, std::abs(value));
  const size_t rank = factors.left.columns;
  std::vector<double> column(rank, 0);
  for (size_t k = 0; k < rank; ++k) {
    for (size_t j = 0; j < matrix.columns; ++j)
      column[k] = std::max(column[k], std::abs(factors.right.values[k * matrix.columns + j]));
  }
  for (size_t i = 0; i < matrix.rows; ++i) {
    double sum = 0;
    for (size_t k = 0; k < rank; ++k)
      sum += std::abs(factors.left.values[i * rank + k]) * column[k];
    if (sum > kMaxGrowth * largest) return true;
  }
  return false;
}

}  // namespace

const Tensor* LiteralOperand(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  if (!IsConstant(node) || !SymbolName(node).empty() || node.outputs[0].dtype != DType::kF32)
    return nullptr;
  return ConstantValue(node).size() > 1 ? &ConstantValue(node) : nullptr;
}

StoredKernel StoredKernelOf(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  if (node.op->name != "Mul") return {LiteralOperand(graph, value), std::nullopt};
  for (const size_t k : {size_t{0}, size_t{1}}) {
    const Tensor* values = LiteralOperand(graph, node.inputs[k]);
    const ValueId scale = node.inputs[1 - k];
    if (values == nullptr || values->type() != node.outputs[0] || !IsWeight(graph, scale)) continue;
    Shape rows(values->shape().size(), 1);
    if (!rows.empty()) rows[0] = values->shape()[0];
    if (graph.type(scale).shape == rows) return {values, scale};
  }
  return {};
}

std::optional<MatrixFactors> FactorExactly(const StoredMatrix& matrix, size_t max_rank) {
  if (!std::all_of(matrix.values.begin(), matrix.values.end(),
                   [](double value) { return std::isfinite(value); }))
    return std::nullopt;
  const auto good = [&](const std::optional<MatrixFactors>& factors) {
    return factors.has_value() && !Cancels(matrix, *factors);
  };
  std::optional<RowBasis> rows;
  if (MayBeFactored(matrix, max_rank)) rows = FindRowBasis(matrix, max_rank);
  if (rows.has_value()) {
    if (auto factors = ByRows(matrix, *rows); good(factors)) return factors;
  }
  const StoredMatrix across = Transposed(matrix);
  if (MayBeFactored(across, max_rank)) {
    const std::optional<RowBasis> columns = FindRowBasis(across, max_rank);
    std::optional<MatrixFactors> turned =
        columns.has_value() ? ByRows(across, *columns) : std::nullopt;
    if (turned.has_value())
      turned = MatrixFactors{Transposed(turned->right), Transposed(turned->left)};
    if (good(turned)) return turned;
  }
  if (!rows.has_value()) return std::nullopt;
  if (auto factors = ByLattice(matrix, *rows); good(factors)) return factors;
  return std::nullopt;
}

std::optional<std::vector<MatrixFactors>> FactorAllExactly(
    const std::vector<StoredMatrix>& matrices, size_t max_rank) {
  std::vector<MatrixFactors> all;
  size_t rank = 0;
  for (const StoredMatrix& matrix : matrices) {
    const bool zero = std::all_of(matrix.values.begin(), matrix.values.end(),
                                  [](double value) { return value == 0; });
    std::optional<MatrixFactors> factors =
        MatrixFactors{{matrix.rows, 0, {}}, {0, matrix.columns, {}}};
    if (!zero) factors = FactorExactly(matrix, max_rank);
    if (!factors.has_value()) return std::nullopt;
    rank = std::max(rank, factors->left.columns);
    all.push_back(*std::move(factors));
  }
  if (rank == 0) return std::nullopt;
  for (MatrixFactors& factors : all) {
    StoredMatrix left{factors.left.rows, rank, std::vector<double>(factors.left.rows * rank, 0)};
    for (size_t i = 0; i < left.rows; ++i) {
      for (size_t k = 0; k < factors.left.columns; ++k)
        left.values[i * rank + k] = factors.left.values[i * factors.left.columns + k];
    }
    factors.left = std::move(left);
    factors.right.rows = rank;
    factors.right.values.resize(rank * factors.right.columns, 0);
  }
  return all;
}

}  // namespace mendel
