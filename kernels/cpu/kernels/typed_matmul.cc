#include "kernels/cpu/kernels/typed_matmul.h"

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
template <class T>
struct TypedBlock {
  const T* left;
  const T* right;
  T* to;
  int64_t rows, columns, depth;
  int64_t left_stride, right_stride, to_stride;
};

#define MENDEL_EACH_ISA "kernels/cpu/kernels/typed_matmul_kernel.inc"
#include "kernels/cpu/simd/each_isa.inc"

/// A block of the right operand stays in a core's caches while all rows are multiplied with it.
constexpr int64_t kColumns = 256, kDepth = 64;

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

std::unique_ptr<Kernel> MakeTypedMatMulKernel(const TypedMatMul& problem) {
  if (problem.dtype == DType::kI32) return std::make_unique<TypedMatMulKernel<uint32_t>>(problem);
  if (problem.dtype == DType::kI64) return std::make_unique<TypedMatMulKernel<uint64_t>>(problem);
  if (problem.dtype == DType::kF64) return std::make_unique<TypedMatMulKernel<double>>(problem);
  return nullptr;
}

}  // namespace mendel::cpu
