#include "kernels/cpu/kernels/code_table.h"

#include <immintrin.h>

#include <cstddef>

#include "kernels/cpu/simd/native_isa.h"

namespace mendel::cpu {
namespace {

#define MENDEL_EACH_ISA "kernels/cpu/kernels/code_table.inc"
#include "kernels/cpu/simd/each_isa.inc"

}  // namespace

void Translate(const uint8_t* from, int64_t count, const std::array<uint8_t, 256>& table,
               uint8_t* to) {
  ForIsa(&baseline::TranslateBytes, &avx2::TranslateBytes, &avx512::TranslateBytes)(
      from, count, table.data(), to);
}

}  // namespace mendel::cpu
