// Speed of matrix products in GF(p) with a certifying prime: prints GMAC/s on one thread. Nothing
// is asserted.

#include "base/field_gemm.h"

#include <cstdio>
#include <vector>

#include "base/deadline.h"

namespace mendel {
namespace {

void Measure(const PrimeField& field, int64_t m, int64_t n, int64_t k) {
  Rng rng(1);
  std::vector<uint64_t> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n)),
      c(static_cast<size_t>(m * n));
  for (uint64_t& value : a) value = field.RandomElement(rng);
  for (uint64_t& value : b) value = field.RandomElement(rng);
  const auto rate = [&](auto&& product) {
    int runs = 0;
    const Stopwatch watch;
    do {
      product();
      ++runs;
    } while (watch.Seconds() < 0.5);
    return static_cast<double>(runs) * static_cast<double>(m * n * k) / watch.Seconds() / 1e9;
  };
  const double ours =
      rate([&] { field.MatMul(m, n, k, a.data(), k, b.data(), n, c.data(), n, false); });
  const double ntl =
      rate([&] { NtlMatMul(field, m, n, k, a.data(), k, b.data(), n, c.data(), n, false); });
  std::printf("p = %19llu  %4lld x %4lld x %4lld: %6.2f GMAC/s, NTL %6.2f GMAC/s\n",
              static_cast<unsigned long long>(field.prime()), static_cast<long long>(m),
              static_cast<long long>(n), static_cast<long long>(k), ours, ntl);
}

}  // namespace
}  // namespace mendel

int main() {
  mendel::Rng rng(1);
  const mendel::PrimeField certifying = mendel::PrimeField::RandomCertifying(rng);
  for (const mendel::PrimeField& field : {certifying, mendel::PrimeField(1048573)}) {
    mendel::Measure(field, 64, 1820, 576);
    mendel::Measure(field, 512, 227, 4608);
    mendel::Measure(field, 64, 4096, 27);
    mendel::Measure(field, 1, 4096, 9);
  }
  return 0;
}
