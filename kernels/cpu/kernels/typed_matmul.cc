#include "kernels/cpu/kernels/typed_matmul.h"

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/simd/native_isa.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// Strides in elements.
template <class Left, class Right, class To>
struct MatMulBlock {
  const Left* left;
  const Right* right;
  To* to;
  int64_t rows, columns, depth;
  int64_t left_stride, right_stride, to_stride;
};
template <class T>
using TypedBlock = MatMulBlock<T, T, T>;

/// A block of small integers has an even depth, and rows that six divides.
constexpr int64_t kSmallDepth = 256, kSmallRows = 96;
/// All numbers are of 16 bits. The right operand has panels of columns, `right_stride` elements
/// each, in which two rows alternate.
using SmallBlock = MatMulBlock<int32_t, int16_t, uint32_t>;

#define MENDEL_EACH_ISA "kernels/cpu/kernels/typed_matmul_kernel.inc"
#include "kernels/cpu/simd/each_isa.inc"

/// A block of the right operand stays in a core's caches while all rows are multiplied with it.
constexpr int64_t kColumns = 256, kDepth = 64;

class SmallIntegerMatMulKernel final : public Kernel {
 public:
  explicit SmallIntegerMatMulKernel(const TypedMatMul& problem) : p_(problem) {}

  absl::Status Run(const Bindings& bindings) override {
    const auto add =
        ForIsa(&baseline::AddSmallProduct, &avx2::AddSmallProduct, &avx512::AddSmallProduct);
    const int32_t* const left = bindings.At<int32_t>(p_.left);
    const int16_t* const right = bindings.At<int16_t>(p_.right);
    uint32_t* const to = bindings.At<uint32_t>(p_.to);
    const int64_t depth = EvenDepth(p_.depth), across = (p_.columns + kColumns - 1) / kColumns;
    const int64_t down = (p_.rows + kSmallRows - 1) / kSmallRows;
    const int64_t work = std::min(kSmallRows, p_.rows) * p_.depth * std::min(kColumns, p_.columns);
    ParallelRange(across * down, GrainOf(work), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t row = k / across * kSmallRows, column = k % across * kColumns;
        const int64_t rows = std::min(kSmallRows, p_.rows - row);
        const int64_t columns = std::min(kColumns, p_.columns - column);
        uint32_t* const corner = to + row * p_.columns + column;
        for (int64_t i = 0; i < rows; ++i) std::fill_n(corner + i * p_.columns, columns, 0u);
        for (int64_t at = 0; at < p_.depth; at += kSmallDepth) {
          add({left + row * p_.depth + at, right + column * depth + at * Panel(), corner, rows,
               columns, std::min(kSmallDepth, p_.depth - at), p_.depth, depth * Panel(),
               p_.columns});
        }
      }
    });
    return absl::OkStatus();
  }

  static int64_t Panel() {
    return ForIsa(baseline::kSmallPanel, avx2::kSmallPanel, avx512::kSmallPanel);
  }
  static int64_t EvenDepth(int64_t depth) { return depth + depth % 2; }

 private:
  TypedMatMul p_;
};

/// Unsigned, because signed integers must not overflow.
template <class T>
class TypedMatMulKernel final : public Kernel {
 public:
  explicit TypedMatMulKernel(const TypedMatMul& problem) : p_(problem) {}

  absl::Status Run(const Bindings& bindings) override {
    const auto add = ForIsa(&baseline::AddProduct<T>, &avx2::AddProduct<T>, &avx512::AddProduct<T>);
    const T* const left = bindings.At<T>(p_.left);
    const T* const right = bindings.At<T>(p_.right);
    T* const to = bindings.At<T>(p_.to);
    const int64_t blocks = (p_.columns + kColumns - 1) / kColumns;
    const int64_t work = p_.rows * p_.depth * std::min(kColumns, p_.columns);
    ParallelRange(p_.batch * blocks, GrainOf(work), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t b = k / blocks, column = k % blocks * kColumns;
        TypedBlock<T> block{left + b * p_.left_step,
                            right + b * p_.right_step + column,
                            to + b * p_.rows * p_.columns + column,
                            p_.rows,
                            std::min(kColumns, p_.columns - column),
                            0,
                            p_.depth,
                            p_.columns,
                            p_.columns};
        for (int64_t i = 0; i < p_.rows; ++i)
          std::fill_n(block.to + i * p_.columns, block.columns, T{});
        for (int64_t at = 0; at < p_.depth; at += kDepth) {
          block.depth = std::min(kDepth, p_.depth - at);
          add(block);
          block.left += block.depth;
          block.right += block.depth * p_.columns;
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  TypedMatMul p_;
};

}  // namespace

int64_t PackedSmallIntegers(int64_t depth, int64_t columns) {
  const int64_t panel = SmallIntegerMatMulKernel::Panel();
  return (columns + panel - 1) / panel * panel * SmallIntegerMatMulKernel::EvenDepth(depth);
}

void PackSmallIntegers(const Tensor& integers, int16_t* to) {
  const int64_t depth = integers.shape()[0], columns = integers.shape()[1];
  const int64_t panel = SmallIntegerMatMulKernel::Panel();
  for (int64_t j = 0; j < columns; j += panel) {
    for (int64_t k = 0; k < depth; k += 2) {
      for (int64_t c = j; c < j + panel; ++c) {
        for (int64_t row = k; row < k + 2; ++row) {
          const bool inside = c < columns && row < depth;
          *to++ = inside ? static_cast<int16_t>(integers.IntAt(row * columns + c)) : int16_t{0};
        }
      }
    }
  }
}

std::unique_ptr<Kernel> MakeSmallIntegerMatMulKernel(const TypedMatMul& problem) {
  return std::make_unique<SmallIntegerMatMulKernel>(problem);
}

std::unique_ptr<Kernel> MakeTypedMatMulKernel(const TypedMatMul& problem) {
  if (problem.dtype == DType::kI32) return std::make_unique<TypedMatMulKernel<uint32_t>>(problem);
  if (problem.dtype == DType::kI64) return std::make_unique<TypedMatMulKernel<uint64_t>>(problem);
  if (problem.dtype == DType::kF64) return std::make_unique<TypedMatMulKernel<double>>(problem);
  return nullptr;
}

}  // namespace mendel::cpu
