#include "verifier/axioms/root_of_two.h"

#include <algorithm>

#include "base/check.h"

namespace mendel {
namespace {

uint64_t AnyRoot(const PrimeField& field) {
  const uint64_t p = field.prime();
  if (p % 8 == 7) return field.Pow(2, (p + 1) / 4);  // its square is 2^((p - 1) / 2) 2 = 2
  // An eighth root of unity z with z^4 = -1: (z + 1/z)^2 = z^2 + 2 + z^-2 = 2. Half of all bases
  // give one.
  for (uint64_t base = 3;; ++base) {
    const uint64_t z = field.Pow(base, (p - 1) / 8);
    if (field.Pow(z, 4) == p - 1) return field.Add(z, field.Inverse(z));
  }
}

}  // namespace

uint64_t RootOfTwo(const PrimeField& field, bool second) {
  MENDEL_CHECK(HasRootOfTwo(field.prime()));
  const uint64_t root = AnyRoot(field);
  MENDEL_CHECK(field.Mul(root, root) == 2 % field.prime());
  const uint64_t other = field.Neg(root);
  return second ? std::max(root, other) : std::min(root, other);
}

}  // namespace mendel
