#include "kernels/cpu/kernels/code_sum.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/simd/native_isa.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// round(max((a - zero[0]) scale[0] + (b - zero[1]) scale[1], least) / step) + shift, clamped.
struct SumOfCodes {
  float zero[2], scale[2];
  float least;
  float step, reciprocal, shift, low, high;
};

using AddFunction = void (*)(const std::byte* a, const std::byte* b, int64_t count,
                             const SumOfCodes& s, std::byte* to);

// This file is compiled without contraction: a fused product and sum would round once only.
#define MENDEL_EACH_ISA "kernels/cpu/kernels/code_sum.inc"
#include "kernels/cpu/simd/each_isa.inc"

template <bool kDivides>
AddFunction FunctionOf(DType a, DType b, DType to) {
  return ForIsa(&baseline::FunctionOf<kDivides>, &avx2::FunctionOf<kDivides>,
                &avx512::FunctionOf<kDivides>)(a, b, to);
}

/// The corrected product may differ from the quotient in its last bit. Where that would change a
/// code of one of the 65,536 pairs, the kernel divides.
AddFunction ExactFunction(DType a, DType b, DType to, const SumOfCodes& s) {
  constexpr size_t kCodes = 256;
  const AddFunction divides = FunctionOf<true>(a, b, to), multiplies = FunctionOf<false>(a, b, to);
  std::array<std::byte, kCodes> all, one, right, fast;
  for (size_t k = 0; k < kCodes; ++k) all[k] = static_cast<std::byte>(k);
  for (size_t k = 0; k < kCodes; ++k) {
    one.fill(all[k]);
    divides(one.data(), all.data(), kCodes, s, right.data());
    multiplies(one.data(), all.data(), kCodes, s, fast.data());
    if (right != fast) return divides;
  }
  return multiplies;
}

class CodeSumKernel final : public Kernel {
 public:
  CodeSumKernel(const TileProgram& program, const SumOfCodes& sum)
      : a_(program.operands[0].place),
        b_(program.operands[1].place),
        to_(program.output),
        count_(NumElements(program.extents)),
        sum_(sum),
        add_(ExactFunction(program.operands[0].dtype, program.operands[1].dtype,
                           program.output_dtype, sum)) {}

  absl::Status Run(const Bindings& bindings) override {
    const std::byte *const a = bindings.Address(a_), *const b = bindings.Address(b_);
    std::byte* const to = bindings.Address(to_);
    ParallelRange(count_, GrainOf(1), [&](int64_t begin, int64_t end) {
      add_(a + begin, b + begin, end - begin, sum_, to + begin);
    });
    return absl::OkStatus();
  }

 private:
  Place a_, b_, to_;
  int64_t count_;
  SumOfCodes sum_;
  AddFunction add_;
};

}  // namespace

std::unique_ptr<Kernel> MakeCodeSumKernel(const TileProgram& program) {
  if (!program.quantizes || program.operands.size() != 2 || program.calls.empty() ||
      program.calls.size() > 2)
    return nullptr;
  const Shape whole = RowMajorStrides(program.extents);
  for (const TileOperand& operand : program.operands) {
    if (!operand.scaled || !IsCode(operand.dtype)) return nullptr;
    for (size_t d = 0; d < whole.size(); ++d) {
      if (operand.strides[d] != whole[d] && program.extents[d] != 1) return nullptr;
    }
  }
  const TileCall &sum = program.calls.front(), &last = program.calls.back();
  if (sum.name != "Add" || sum.in[0] != 0 || sum.in[1] != 1 || last.out != program.result)
    return nullptr;
  if (program.calls.size() == 2 && (last.name != "Relu" || last.in[0] != sum.out)) return nullptr;
  SumOfCodes s{};
  for (size_t k = 0; k < 2; ++k) {
    s.zero[k] = program.operands[k].zero;
    s.scale[k] = program.operands[k].scale;
  }
  s.least = program.calls.size() == 2 ? 0.0f : -std::numeric_limits<float>::infinity();
  s.step = program.quantization[0];
  s.reciprocal = 1 / s.step;
  s.shift = program.quantization[1];
  s.low = program.quantization[2];
  s.high = program.quantization[3];
  // All sums are numbers: each has a code.
  for (const float number : {s.zero[0], s.zero[1], s.scale[0], s.scale[1], s.reciprocal, s.shift}) {
    if (!(std::abs(number) < 1e30f)) return nullptr;
  }
  if (!(std::abs(s.step) > 1e-30f && std::abs(s.step) < 1e30f)) return nullptr;
  return std::make_unique<CodeSumKernel>(program, s);
}

}  // namespace mendel::cpu
