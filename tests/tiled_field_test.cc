// Random tiled kernels in GF(p): right ones, and ones with a fault.

#include <cstdint>
#include <cstdio>
#include <string>

#include "gtest/gtest.h"
#include "kernels/cuda/testing/convolution_case.h"
#include "kernels/cuda/testing/product_case.h"
#include "kernels/cuda/tiled/chain_case.h"
#include "kernels/cuda/tiled/product_chain_case.h"
#include "tests/tiled_field_cases.h"

namespace mendel::cuda {
namespace {

void Add(FieldCases& cases, const DeviceCase& one, uint64_t seed) {
  cases.AddAll(one.graph, seed, one.description);
}

TEST(TiledField, EqualsTheVerifierAtEveryElement) {
  FieldCases cases;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Add(cases, RandomChain(seed, ChainValues::kField), seed);
    Add(cases, RandomProduct(seed, Numerics::kDefault), seed);
    Add(cases, RandomConvolutions(seed, Numerics::kDefault), seed);
    Add(cases, RandomMatrixChain(seed, ChainValues::kField), seed);
    Add(cases, RandomConvolutionChain(seed, ChainValues::kField), seed);
  }
  const int64_t elements = ExpectRight(cases);
  const int pairs = cases.Count(":pair"), rows = cases.Count(":rows"),
            chains = cases.Count(":chain");
  const int divided = cases.Count(":split"), by_tensor_cores = cases.Count("tile-");
  EXPECT_GT(pairs, 3);
  EXPECT_GT(rows, 9);
  EXPECT_GT(chains, 15);
  EXPECT_GT(divided, 3);
  EXPECT_GT(by_tensor_cores, 9);
  EXPECT_GT(cases.Count(":async"), 9);
  std::printf(
      "%zu tiled kernels in GF(p), %d of pairs, %d of rows, %d of chains, %d of divided sums, %d "
      "by tensor cores: %lld "
      "elements equal\n",
      cases.kernels.size(), pairs, rows, chains, divided, by_tensor_cores,
      static_cast<long long>(elements));
}

/// Another sign of the sums, columns of a warp's products exchanged, the last products of a sum and
/// a part of a divided one left out.
TEST(TiledField, PlantedFaultsDiffer) {
  FieldCases right;
  for (uint64_t seed = 1; seed <= 4; ++seed)
    Add(right, RandomChain(seed, ChainValues::kField), seed);
  ExpectSeen(right.Without("tile-"), {{"] = Plus(sum0", "] = Minus(sum0"}});
  ExpectSeen(right.With("tile-"), {{"+ lane / 4 +", "+ (lane / 4 ^ 1) +"}});
  ExpectSeen(right, {{" && k < ", " && k + 4 < "}});
  ExpectSeen(right.With(":split"), {{"k0 >= begin", "k0 > begin"},
                                    {"int part = 1", "int part = 2", &LibraryGroup::finish}});
}

/// The same in the first of two products.
TEST(TiledField, PlantedFaultsOfChainsDiffer) {
  FieldCases right;
  for (uint64_t seed = 1; seed <= 6; ++seed)
    Add(right, RandomMatrixChain(seed, ChainValues::kField), seed);
  ExpectSeen(right.With(":chain"),
             {{"] = Plus(sum[", "] = Minus(sum["}, {" && k < ", " && k + 4 < "}});
}

}  // namespace
}  // namespace mendel::cuda
