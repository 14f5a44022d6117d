#include "verifier/regions/right_elements.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "graph/emitter.h"
#include "graph/evaluate.h"

namespace mendel {
namespace {

Box RandomBox(Rng& rng, const Shape& shape) {
  Box box = Box::Whole(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    box.begin[d] = rng.Between(0, shape[d] - 1);
    box.end[d] = rng.Between(box.begin[d], shape[d]);
  }
  return box;
}

TEST(BoxesOutside, CoverEveryOtherPositionOnce) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const Shape shape = {rng.Between(1, 5), rng.Between(1, 5), rng.Between(1, 4)};
    std::vector<Box> removed;
    for (int64_t k = rng.Between(0, 4); k > 0; --k) removed.push_back(RandomBox(rng, shape));
    const std::vector<Box> boxes = BoxesOutside(Box::Whole(shape), removed);
    for (int64_t i = 0; i < shape[0] * shape[1] * shape[2]; ++i) {
      const Shape at = {i / shape[2] / shape[1], i / shape[2] % shape[1], i % shape[2]};
      int covered = 0, gone = 0;
      for (const Box& box : boxes) covered += box.Contains(at) ? 1 : 0;
      for (const Box& box : removed) gone += box.Contains(at) ? 1 : 0;
      ASSERT_EQ(covered, gone == 0 ? 1 : 0) << "seed " << seed;
    }
  }
}

TEST(WithoutElements, KeepsTheOtherElements) {
  Emitter e("g");
  const ValueId x = e.Input("x", {DType::kF32, {2, 3}});
  e.Output("y", e.Add(x, x));
  e.Output("z", e.Mul(x, x));
  const auto rest = WithoutElements(*e.Finish(), {{{{0, 1}, {2, 3}}}, {Box::Whole({2, 3})}});
  ASSERT_TRUE(rest.ok()) << rest.status();
  ASSERT_EQ(rest->outputs().size(), 1u);
  const std::vector<HostValue> inputs = {HostValue::FromTensor(
      Tensor::FromDoubles({DType::kF32, {2, 3}}, std::vector<double>{1, 2, 3, 4, 5, 6}))};
  const auto values = Evaluate(*rest, inputs);
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->front().scalars, (std::vector<double>{2, 8}));
}

}  // namespace
}  // namespace mendel
