#include "bench/machine_peak.h"

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/deadline.h"

namespace mendel {
namespace {

// Independent sums: more than latency times units of any core, and they fit the registers.
constexpr int kChains = 12;
constexpr int64_t kSteps = 200'000;
constexpr int kRuns = 40, kPasses = 5;        // short runs: between other work, one is undisturbed
constexpr size_t kBytes = size_t{512} << 20;  // beyond last-level caches

volatile float sink;  // keeps the loops

__attribute__((target("avx512f"))) void MultiplyAdd512() {
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  __m512 a = _mm512_set1_ps(0.5F), b = _mm512_set1_ps(0.25F);
  for (int64_t step = 0; step < kSteps; ++step) {
    // The operands could have changed, for all that the compiler knows: no product is taken out of
    // the loop.
    __asm__ volatile("" : "+v"(a), "+v"(b));
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(a, b, sum);
  }
  for (const __m512& sum : sums) sink = sink + _mm512_cvtss_f32(sum);
}

__attribute__((target("avx2,fma"))) void MultiplyAdd256() {
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  __m256 a = _mm256_set1_ps(0.5F), b = _mm256_set1_ps(0.25F);
  for (int64_t step = 0; step < kSteps; ++step) {
    __asm__ volatile("" : "+x"(a), "+x"(b));
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(a, b, sum);
  }
  for (const __m256& sum : sums) sink = sink + _mm256_cvtss_f32(sum);
}

double Flops() {
  const bool wide = __builtin_cpu_supports("avx512f") != 0;
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const Stopwatch clock;
    wide ? MultiplyAdd512() : MultiplyAdd256();
    best = std::max(best, 2.0 * (wide ? 16 : 8) * kChains * kSteps / clock.Seconds());
  }
  return best;
}

double Bytes() {
  const std::vector<uint64_t> words(kBytes / sizeof(uint64_t), 1);
  double best = 0;
  for (int run = 0; run < kPasses; ++run) {
    const Stopwatch clock;
    uint64_t sums[8] = {};
    for (size_t k = 0; k < words.size(); k += 8) {
      for (size_t lane = 0; lane < 8; ++lane) sums[lane] += words[k + lane];
    }
    const double seconds = clock.Seconds();
    for (const uint64_t sum : sums) sink = sink + static_cast<float>(sum);
    best = std::max(best, static_cast<double>(kBytes) / seconds);
  }
  return best;
}

}  // namespace

MachinePeak MeasureMachinePeak() { return {Flops(), Bytes()}; }

}  // namespace mendel
