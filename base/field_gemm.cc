#include "base/field_gemm.h"

#include <algorithm>
#include <array>
#include <memory>

#include "base/check.h"

namespace mendel {
namespace {

constexpr int kLimbBits = 20;
constexpr uint64_t kLimbMask = (uint64_t{1} << kLimbBits) - 1;
/// Depth of one exact block: (2^21)^2 * 2^10 = 2^52 for sums of two limbs.
constexpr int64_t kDepth = 1024;
constexpr int64_t kRows = 128;
constexpr int64_t kColumns = 256;
/// Limbs 0, 1, 2 and the sums 0 + 1, 0 + 2, 1 + 2.
constexpr int kPlanes = 6;

/// Splits a block into planes of `stride` elements, rows tight.
void SplitBlock(const uint64_t* block, int64_t ld, int64_t rows, int64_t columns, int planes,
                double* out, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i) {
    const uint64_t* row = block + i * ld;
    double* to = out + i * columns;
    if (planes == 1) {
      for (int64_t j = 0; j < columns; ++j)
        to[j] = static_cast<double>(static_cast<int32_t>(row[j]));
      continue;
    }
    for (int64_t j = 0; j < columns; ++j) {
      const int32_t low = static_cast<int32_t>(row[j] & kLimbMask);
      const int32_t middle = static_cast<int32_t>(row[j] >> kLimbBits & kLimbMask);
      const int32_t high = static_cast<int32_t>(row[j] >> 2 * kLimbBits);
      to[j] = low;
      to[stride + j] = middle;
      to[2 * stride + j] = high;
      to[3 * stride + j] = low + middle;
      to[4 * stride + j] = low + high;
      to[5 * stride + j] = middle + high;
    }
  }
}

/// Residues of the block products, from the planes' products.
class Combiner {
 public:
  explicit Combiner(const PrimeField& field) : field_(field) {
    for (size_t k = 0; k < powers_.size(); ++k) powers_[k] = field.Pow(2, (k + 1) * kLimbBits);
  }

  uint64_t One(const double* product) const {
    return static_cast<uint64_t>(*product) % field_.prime();
  }

  /// a b = sum over limbs; the mixed terms are Karatsuba's differences, all exact integers below
  /// 2^53 and so below p.
  uint64_t Six(const double* product, int64_t stride) const {
    const double low = product[0];
    const double middle = product[stride];
    const double high = product[2 * stride];
    const uint64_t term1 = static_cast<uint64_t>(product[3 * stride] - low - middle);
    const uint64_t term2 = static_cast<uint64_t>(product[4 * stride] - low - high + middle);
    const uint64_t term3 = static_cast<uint64_t>(product[5 * stride] - middle - high);
    uint64_t sum = field_.Add(static_cast<uint64_t>(low), field_.Mul(term1, powers_[0]));
    sum = field_.Add(sum, field_.Mul(term2, powers_[1]));
    sum = field_.Add(sum, field_.Mul(term3, powers_[2]));
    return field_.Add(sum, field_.Mul(static_cast<uint64_t>(high), powers_[3]));
  }

 private:
  const PrimeField& field_;
  std::array<uint64_t, 4> powers_;
};

}  // namespace

bool HasLimbMatMul(const PrimeField& field) {
  return field.prime() <= kLimbMask || field.prime() >= uint64_t{1} << 59;
}

void LimbMatMul(const PrimeField& field, GemmTarget target, int64_t m, int64_t n, int64_t k,
                const uint64_t* a, int64_t lda, const uint64_t* b, int64_t ldb, uint64_t* c,
                int64_t ldc, bool accumulate) {
  MENDEL_CHECK(HasLimbMatMul(field));
  const int planes = field.prime() <= kLimbMask ? 1 : kPlanes;
  const Combiner combiner(field);
  const int64_t depth_block = std::clamp<int64_t>(k, 1, kDepth);
  const int64_t column_block = std::clamp<int64_t>(n, 1, kColumns);
  const int64_t row_block = std::clamp<int64_t>(m, 1, kRows);
  const auto left = std::make_unique_for_overwrite<double[]>(
      static_cast<size_t>(planes * row_block * depth_block));
  const auto right = std::make_unique_for_overwrite<double[]>(
      static_cast<size_t>(planes * depth_block * column_block));
  const auto product = std::make_unique_for_overwrite<double[]>(
      static_cast<size_t>(planes * row_block * column_block));
  if (k == 0 && !accumulate) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, uint64_t{0});
  }
  for (int64_t column = 0; column < n; column += column_block) {
    const int64_t columns = std::min(column_block, n - column);
    for (int64_t depth = 0; depth < k; depth += depth_block) {
      const int64_t depths = std::min(depth_block, k - depth);
      SplitBlock(b + depth * ldb + column, ldb, depths, columns, planes, right.get(),
                 depths * columns);
      for (int64_t row = 0; row < m; row += row_block) {
        const int64_t rows = std::min(row_block, m - row);
        SplitBlock(a + row * lda + depth, lda, rows, depths, planes, left.get(), rows * depths);
        for (int64_t plane = 0; plane < planes; ++plane) {
          GemmF64On(target, rows, columns, depths, left.get() + plane * rows * depths, depths,
                    right.get() + plane * depths * columns, columns,
                    product.get() + plane * rows * columns, columns, false);
        }
        for (int64_t i = 0; i < rows; ++i) {
          uint64_t* out = c + (row + i) * ldc + column;
          for (int64_t j = 0; j < columns; ++j) {
            const double* at = product.get() + i * columns + j;
            const uint64_t value =
                planes == 1 ? combiner.One(at) : combiner.Six(at, rows * columns);
            out[j] = accumulate || depth > 0 ? field.Add(out[j], value) : value;
          }
        }
      }
    }
  }
}

void NaiveMatMul(const PrimeField& field, int64_t m, int64_t n, int64_t k, const uint64_t* a,
                 int64_t lda, const uint64_t* b, int64_t ldb, uint64_t* c, int64_t ldc,
                 bool accumulate) {
  constexpr int64_t kExact = 128;  // products below 2^120: fewer than 256 of them fit
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      unsigned __int128 sum = accumulate ? c[i * ldc + j] : 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += static_cast<unsigned __int128>(a[i * lda + p]) * b[p * ldb + j];
        if (p % kExact == kExact - 1) sum %= field.prime();
      }
      c[i * ldc + j] = static_cast<uint64_t>(sum % field.prime());
    }
  }
}

}  // namespace mendel
