#include "base/element_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace mendel {
namespace {

TEST(ElementStream, EveryTargetIsTheHash) {
  Rng rng(1);
  for (int trial = 0; trial < 200; ++trial) {
    const PrimeField field = trial % 2 == 0 ? PrimeField::RandomCertifying(rng)
                                            : PrimeField(trial % 4 == 1 ? 7 : 1048573);
    const std::array<uint64_t, 2> key = {rng.Next(), rng.Next()};
    const uint64_t first = trial % 3 == 0 ? 0 : rng.Next();  // wraps around, too
    std::vector<uint64_t> expected;
    for (uint64_t i = 0; i < rng.Below(40); ++i) {
      KeyedHash hash(key);
      hash.Add(first + i);
      expected.push_back(ElementOfHash(field, hash.Finish()));
      EXPECT_LT(expected.back(), field.prime());
    }
    std::vector<uint64_t> found(expected.size());
    FillElements(field, key, first, found);
    EXPECT_EQ(found, expected);
    for (const StreamTarget target : SupportedStreamTargets()) {
      std::fill(found.begin(), found.end(), 0);
      FillElementsOn(target, field, key, first, found);
      EXPECT_EQ(found, expected) << "target " << static_cast<int>(target);
    }
  }
}

TEST(ElementStream, ScalesTheWholeHash) {
  const PrimeField field(1048573);
  EXPECT_EQ(ElementOfHash(field, {0, 0}), 0u);
  EXPECT_EQ(ElementOfHash(field, {~uint64_t{0}, ~uint64_t{0}}), field.prime() - 1);
  EXPECT_EQ(ElementOfHash(field, {uint64_t{1} << 63, 0}), field.prime() / 2);
  // The low word decides at the border between two elements: 2^128 / p lies between these two
  // hashes.
  const unsigned __int128 border = ~static_cast<unsigned __int128>(0) / field.prime();
  const auto at = [&](unsigned __int128 h) {
    return ElementOfHash(field, {static_cast<uint64_t>(h >> 64), static_cast<uint64_t>(h)});
  };
  EXPECT_EQ(at(border), 0u);
  EXPECT_EQ(at(border + 1), 1u);
}

TEST(ElementStream, FillsTheFieldEvenly) {
  const PrimeField field(17);
  std::vector<uint64_t> elements(170000);
  FillElements(field, {1, 2}, 0, elements);
  std::vector<int> counts(17);
  for (uint64_t element : elements) ++counts[element];
  for (int count : counts) EXPECT_NEAR(count, 10000, 500);  // five standard deviations
}

}  // namespace
}  // namespace mendel
