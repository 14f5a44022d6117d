#include "kernels/cpu/kernels/copy.h"

#include <emmintrin.h>
#include <xmmintrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// Orders loops from the outermost to the innermost, which has the destination's nearest elements.
/// Neighboring loops are merged.
StridedCopy Simplified(StridedCopy copy) {
  std::vector<size_t> order(copy.extents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return copy.to_strides[a] > copy.to_strides[b]; });
  StridedCopy result{copy.from, copy.to, {}, {}, {}};
  for (size_t d : order) {
    if (copy.extents[d] == 1) continue;
    const bool follows = !result.extents.empty() &&
                         result.from_strides.back() == copy.from_strides[d] * copy.extents[d] &&
                         result.to_strides.back() == copy.to_strides[d] * copy.extents[d];
    if (follows) {
      result.extents.back() *= copy.extents[d];
      result.from_strides.back() = copy.from_strides[d];
      result.to_strides.back() = copy.to_strides[d];
    } else {
      result.extents.push_back(copy.extents[d]);
      result.from_strides.push_back(copy.from_strides[d]);
      result.to_strides.push_back(copy.to_strides[d]);
    }
  }
  while (result.extents.size() < 2) {
    result.extents.insert(result.extents.begin(), 1);
    result.from_strides.insert(result.from_strides.begin(), 0);
    result.to_strides.insert(result.to_strides.begin(), 0);
  }
  // The loop next to the innermost is the one along which the source is contiguous, so that a tile
  // of both stays in cache.
  const size_t last = result.extents.size() - 1;
  for (size_t d = 0; d + 1 < last; ++d) {
    if (result.from_strides[d] != 1 || result.from_strides[last] == 1) continue;
    std::swap(result.extents[d], result.extents[last - 1]);
    std::swap(result.from_strides[d], result.from_strides[last - 1]);
    std::swap(result.to_strides[d], result.to_strides[last - 1]);
    break;
  }
  return result;
}

constexpr int64_t kTile = 16;

/// to[r * to_row + c] = from[r + c * from_column] for a square tile of words, four by four in
/// registers.
void TransposeTile(const uint32_t* from, int64_t from_column, uint32_t* to, int64_t to_row) {
  for (int64_t r = 0; r < kTile; r += 4) {
    for (int64_t c = 0; c < kTile; c += 4) {
      __m128 lines[4];
      for (int64_t k = 0; k < 4; ++k) {
        lines[k] = _mm_castsi128_ps(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + (c + k) * from_column + r)));
      }
      _MM_TRANSPOSE4_PS(lines[0], lines[1], lines[2], lines[3]);
      for (int64_t k = 0; k < 4; ++k) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (r + k) * to_row + c),
                         _mm_castps_si128(lines[k]));
      }
    }
  }
}

/// Rows and columns of the two innermost loops, with their strides.
struct Plane {
  int64_t columns, from_row, to_row, from_column, to_column;
};

/// Rows of two words next to each other, of which each column comes from one line.
void InterleaveLines(const uint32_t* first, const uint32_t* second, uint32_t* to, int64_t rows) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first + r));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(second + r));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * r), _mm_unpacklo_epi32(a, b));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * r + 4), _mm_unpackhi_epi32(a, b));
  }
  for (; r < rows; ++r) {
    to[2 * r] = first[r];
    to[2 * r + 1] = second[r];
  }
}

/// The source is contiguous along the rows' numbers: tiles of both stay in cache.
template <class T>
void TransposePlane(const Plane& p, const T* from, T* to, int64_t row_begin, int64_t row_end) {
  if constexpr (sizeof(T) == sizeof(uint32_t)) {
    if (p.columns == 2 && p.to_column == 1 && p.to_row == 2) {
      const T* first = from + row_begin;
      return InterleaveLines(first, first + p.from_column, to + 2 * row_begin, row_end - row_begin);
    }
  }
  for (int64_t r0 = row_begin; r0 < row_end; r0 += kTile) {
    const int64_t r1 = std::min(row_end, r0 + kTile);
    for (int64_t c0 = 0; c0 < p.columns; c0 += kTile) {
      const int64_t c1 = std::min(p.columns, c0 + kTile);
      if constexpr (sizeof(T) == sizeof(uint32_t)) {
        if (p.to_column == 1 && r1 - r0 == kTile && c1 - c0 == kTile) {
          TransposeTile(from + r0 + c0 * p.from_column, p.from_column, to + r0 * p.to_row + c0,
                        p.to_row);
          continue;
        }
      }
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c)
          to[r * p.to_row + c * p.to_column] = from[r + c * p.from_column];
      }
    }
  }
}

template <class T>
void CopyPlane(const StridedCopy& copy, const T* from, T* to, int64_t row_begin, int64_t row_end) {
  const size_t last = copy.extents.size() - 1;
  const Plane p{copy.extents[last], copy.from_strides[last - 1], copy.to_strides[last - 1],
                copy.from_strides[last], copy.to_strides[last]};
  if (p.from_row == 1 && p.from_column != 1) return TransposePlane(p, from, to, row_begin, row_end);
  for (int64_t r = row_begin; r < row_end; ++r) {
    const T* source = from + r * p.from_row;
    T* target = to + r * p.to_row;
    if (p.to_column == 1 && p.from_column == 1) {
      std::memcpy(target, source, static_cast<size_t>(p.columns) * sizeof(T));
    } else if (p.to_column == 1 && p.from_column == 0) {
      std::fill(target, target + p.columns, *source);
    } else {
      for (int64_t c = 0; c < p.columns; ++c) target[c * p.to_column] = source[c * p.from_column];
    }
  }
}

template <class T>
class CopyKernel : public Kernel {
 public:
  CopyKernel(std::optional<Fill> fill, std::vector<StridedCopy> copies) : fill_(fill) {
    for (StridedCopy& copy : copies) {
      if (NumElements(copy.extents) > 0) copies_.push_back(Simplified(std::move(copy)));
    }
  }

  absl::Status Run(const Bindings& bindings) override {
    if (fill_.has_value()) {
      T value;
      std::memcpy(&value, &fill_->bits, sizeof(T));
      T* to = bindings.At<T>(fill_->place);
      ParallelRange(fill_->elements, 1 << 15,
                    [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, value); });
    }
    for (const StridedCopy& copy : copies_)
      RunOne(copy, bindings.At<T>(copy.from), bindings.At<T>(copy.to));
    return absl::OkStatus();
  }

 private:
  static void RunOne(const StridedCopy& copy, const T* from, T* to) {
    if (from == to && copy.from_strides == copy.to_strides) return;  // in place already
    const size_t outer_rank = copy.extents.size() - 2;
    const int64_t rows = copy.extents[outer_rank];
    const int64_t planes = NumElements(copy.extents) / rows / copy.extents.back();
    const int64_t grain = std::max<int64_t>(1, (1 << 14) / copy.extents.back());
    ParallelRange(planes * rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end;) {
        int64_t plane = row / rows;
        const int64_t first = row % rows;
        const int64_t count = std::min(rows - first, end - row);
        const T* source = from;
        T* target = to;
        for (size_t d = outer_rank; d-- > 0; plane /= copy.extents[d]) {
          source += plane % copy.extents[d] * copy.from_strides[d];
          target += plane % copy.extents[d] * copy.to_strides[d];
        }
        CopyPlane(copy, source, target, first, first + count);
        row += count;
      }
    });
  }

  std::optional<Fill> fill_;
  std::vector<StridedCopy> copies_;
};

std::unique_ptr<Kernel> Make(std::optional<Fill> fill, std::vector<StridedCopy> copies,
                             int64_t element_bytes) {
  if (element_bytes == 1) return std::make_unique<CopyKernel<uint8_t>>(fill, std::move(copies));
  if (element_bytes == 2) return std::make_unique<CopyKernel<uint16_t>>(fill, std::move(copies));
  if (element_bytes == 4) return std::make_unique<CopyKernel<uint32_t>>(fill, std::move(copies));
  return std::make_unique<CopyKernel<uint64_t>>(fill, std::move(copies));
}

}  // namespace

StridedCopy BlockedCopy(const Place& from, const Place& to, const Shape& shape) {
  const int64_t block = to.layout.block;
  MENDEL_CHECK(from.layout.block_dim == 1 && to.layout.block_dim == 1 &&
               from.layout.block == block && shape[1] % block == 0);
  StridedCopy copy{from, to, shape, from.layout.strides, to.layout.strides};
  copy.extents[1] /= block;
  copy.extents.push_back(block);
  copy.from_strides.push_back(1);
  copy.to_strides.push_back(1);
  return copy;
}

std::unique_ptr<Kernel> MakeCopyKernel(std::vector<StridedCopy> copies, int64_t element_bytes) {
  return Make(std::nullopt, std::move(copies), element_bytes);
}

std::unique_ptr<Kernel> MakeFillAndCopyKernel(Fill fill, std::vector<StridedCopy> copies,
                                              int64_t element_bytes) {
  return Make(std::move(fill), std::move(copies), element_bytes);
}

}  // namespace mendel::cpu
