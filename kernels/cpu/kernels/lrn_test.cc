// The kernel of LRN against the operator's definition.

#include <cstdint>
#include <limits>
#include <vector>

#include "graph/evaluate.h"
#include "gtest/gtest.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

void CheckLrn(const Shape& shape, const Attributes& attrs, const ChangeInputs& change = nullptr) {
  CheckOperator("LRN", {{DType::kF32, shape}}, attrs, {}, change);
}

TEST(CpuOperator, Lrn) {
  for (const double beta : {0.75, 0.5, 1.0, 0.6}) {
    for (const int64_t size : {1, 4, 5, 30}) {
      CheckLrn({2, 9, 20, 15}, {{"alpha", 0.5}, {"beta", beta}, {"bias", 2.0}, {"size", size}});
    }
  }
}

/// Bases about powers of two, tails of vectors, sums of squares that are no f32 and a base that is
/// no normal one.
TEST(CpuOperator, LrnOfTailsAndExtremes) {
  for (const int64_t plane : {1, 3, 7, 8, 17, 255, 257, 300, 1025, 2047, 2049}) {
    CheckLrn({1, 5, plane}, {{"alpha", 3.0}, {"beta", 0.75}, {"bias", 1e-3}, {"size", int64_t{3}}});
  }
  const auto scaled = [](double factor) {
    return [factor](std::vector<HostValue>& values) {
      for (double& x : values[0].scalars) x *= factor;
    };
  };
  const Attributes attrs = {{"alpha", 1.0}, {"beta", 0.75}, {"bias", 1.0}, {"size", int64_t{5}}};
  for (const double factor : {1e-20, 1e10, 1e18, 1e25}) CheckLrn({2, 6, 37}, attrs, scaled(factor));
  CheckLrn({2, 3, 2060}, attrs, scaled(1e25));
  CheckLrn({1, 6, 37}, {{"alpha", 1.0}, {"beta", 0.75}, {"bias", 1e-40}, {"size", int64_t{5}}},
           scaled(1e-25));
  CheckLrn({1, 4, 70}, attrs, [](std::vector<HostValue>& values) {
    values[0].scalars[5] = std::numeric_limits<double>::infinity();
    values[0].scalars[69] = std::numeric_limits<double>::quiet_NaN();
  });
}

}  // namespace
}  // namespace mendel::cpu
