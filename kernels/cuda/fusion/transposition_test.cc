// Transposing groups in the emulator, against their definition.

#include "kernels/cuda/fusion/transposition.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/fusion/lowered_case.h"
#include "kernels/cuda/testing/expect_right.h"

namespace mendel::cuda {
namespace {

/// x, with something computed before and after its transposition.
Graph Chain(const Shape& shape, const Ints& perm, DType dtype, bool before, bool after) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {dtype, shape});
  ValueId y = before ? *builder.Add("Relu", {x}) : x;
  y = *builder.Add("Transpose", {y}, {{"perm", perm}});
  if (after) {
    Shape turned;
    for (int64_t dim : perm) turned.push_back(shape[static_cast<size_t>(dim)]);
    const ValueId residual = builder.Input("residual", {dtype, turned});
    const ValueId row = builder.Input("row", {dtype, {turned.back()}});
    y = *builder.Add("Mul", {*builder.Add("Add", {y, residual}), row});
  }
  builder.Output("y", y);
  return *builder.Build();
}

TEST(Transposition, MovesSquares) {
  const auto kernels = [](const Shape& shape, const Ints& perm) {
    return KernelsOf(LoweredCase(Chain(shape, perm, DType::kF32, false, false), "", 1));
  };
  EXPECT_EQ(kernels({40, 33}, {1, 0}), "transposition");
  EXPECT_EQ(kernels({2, 16, 5, 7}, {0, 2, 3, 1}), "transposition")
      << "5 x 7 positions lie side by side in both";
  EXPECT_EQ(kernels({2, 5, 7, 16}, {0, 3, 1, 2}), "transposition");
  EXPECT_EQ(kernels({16, 3, 16}, {1, 0, 2}), "elements_by_4") << "the last dimension stays";
  EXPECT_EQ(kernels({40, 7}, {1, 0}), "elements");
  EXPECT_EQ(KernelsOf(LoweredCase(Chain({40, 32}, {1, 0}, DType::kF32, true, true), "", 1)),
            "transposition_of_4");
}

/// A transposed value and views of the same: no element of it is what all of them read.
TEST(Transposition, LeavesWhatViewsReadToo) {
  const auto with = [](const std::string& rest) {
    return ParsedCase(
        "%0 = Input() {name = \"x\", shape = [40, 32]}\n%1 = Transpose(%0) {perm = [1, 0]}\n" +
            rest,
        3);
  };
  const std::vector<DeviceCase> cases = {
      with(R"(%2 = Slice(%1) {ends = [32, 40], starts = [0, 20], steps = [1, 1]}
              %3 = Slice(%1) {ends = [32, 20], starts = [0, 0], steps = [1, 1]}
              %4 = Concat(%2, %3) {axis = 1}
              %5 = Add(%1, %4)
              return "y" = %5)"),
      with(R"(%2 = Reshape(%1) {shape = [40, 32]}
              %3 = Reshape(%0) {shape = [40, 32]}
              %4 = Add(%2, %3)
              return "y" = %4)")};
  for (const DeviceCase& one : cases)
    EXPECT_EQ(KernelsOf(one).find("transposition"), std::string::npos) << KernelsOf(one);
  ExpectAllRight(cases);
}

TEST(Transposition, MeansItsDefinition) {
  constexpr uint64_t kCases = 30;
  std::vector<DeviceCase> cases;
  size_t squares = 0;
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    Rng rng(seed);
    const int64_t rank = rng.Between(2, 4);
    Shape shape;
    for (int64_t d = 0; d < rank; ++d)
      shape.push_back(d < 2 ? rng.Between(6, 36) : rng.Between(1, 4));
    std::swap(shape[0], shape[rng.Below(shape.size())]);
    Ints perm(shape.size());
    std::iota(perm.begin(), perm.end(), 0);
    if (seed % 2 == 0) {  // the last dimension moves
      std::rotate(perm.begin(), perm.begin() + rng.Between(1, rank - 1), perm.end());
    } else {
      for (size_t d = perm.size(); d-- > 1;) std::swap(perm[d], perm[rng.Below(d + 1)]);
    }
    constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF16, DType::kBF16, DType::kI32};
    const DType dtype = kTypes[rng.Below(5)];
    const bool after = rng.Flip();
    const bool before = rng.Flip() && dtype != DType::kI32;
    cases.push_back(
        LoweredCase(Chain(shape, perm, dtype, before, after), Cat("seed ", seed), seed));
    squares += KernelsOf(cases.back()).find("transposition") == 0 ? 1 : 0;
  }
  EXPECT_GT(squares, kCases / 4);
  ExpectAllRight(cases);
}

}  // namespace
}  // namespace mendel::cuda
