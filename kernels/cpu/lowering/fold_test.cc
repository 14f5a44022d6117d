#include "kernels/cpu/lowering/fold.h"

#include <utility>
#include <vector>

#include "base/random.h"
#include "graph/evaluate.h"
#include "gtest/gtest.h"
#include "kernels/cpu/memory/weight_view.h"

namespace mendel::cpu {
namespace {

TEST(Folded, MovesStoredTensorsAsTheDefinitionsDo) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    GraphBuilder builder("moved");
    const DType dtype = rng.Flip() ? DType::kF32 : DType::kI64;
    const Shape shape = {rng.Between(1, 40), rng.Between(1, 20), rng.Between(1, 3)};
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = static_cast<double>(rng.Between(-1000, 1000));
    ValueId value = builder.Constant(Tensor::FromDoubles({dtype, shape}, values), "w");
    for (int64_t k = rng.Between(1, 4); k > 0; --k) {
      const Shape now = builder.type(value).shape;
      if (rng.Flip()) {
        Ints starts, ends, steps;
        for (const int64_t extent : now) {
          const int64_t first = rng.Between(0, extent - 1), last = rng.Between(0, extent - 1);
          starts.push_back(first);
          ends.push_back(first <= last ? last + 1 : last - 1);
          steps.push_back((first <= last ? 1 : -1) * rng.Between(1, 3));
        }
        value =
            *builder.Add("Slice", {value}, {{"starts", starts}, {"ends", ends}, {"steps", steps}});
        continue;
      }
      if (now.size() == 3 && rng.Flip()) {
        value = *builder.Add("Reshape", {value}, {{"shape", Ints{now[0] * now[1], now[2]}}});
      } else if (now.size() == 3) {
        value = *builder.Add("Transpose", {value}, {{"perm", Ints{1, 2, 0}}});
      } else {
        value = *builder.Add("Transpose", {value}, {{"perm", Ints{1, 0}}});
      }
    }
    builder.Output("y", value);
    const Graph graph = *builder.Build();
    const std::vector<HostValue> wanted = *Evaluate(graph, {});
    Folded folded(graph);
    ASSERT_TRUE(folded.IsConstant(value));
    if (dtype == DType::kF32) {
      const Tensor tensor = wanted[0].ToTensor();
      folded.View(value).Visit([&](const auto* view) {
        for (int64_t i = 0; i < tensor.size(); ++i)
          ASSERT_EQ(static_cast<double>(view[i]), tensor.DoubleAt(i));
      });
    }
    EXPECT_EQ(folded.Rounded(value), wanted[0].ToTensor());
  }
}

TEST(Folded, SlicesOfNothingAndOfOneElementAreMoved) {
  GraphBuilder builder("moved");
  const ValueId weights = builder.Constant(
      Tensor::FromDoubles({DType::kF32, {2, 3}}, std::vector<double>{1, 2, 3, 4, 5, 6}), "w");
  const auto slice = [&](Ints starts, Ints ends, Ints steps) {
    return *builder.Add(
        "Slice", {weights},
        {{"starts", std::move(starts)}, {"ends", std::move(ends)}, {"steps", std::move(steps)}});
  };
  const ValueId none = slice({1, 0}, {1, 3}, {1, 1});
  const ValueId one = slice({1, 2}, {2, 3}, {int64_t{1} << 62, 1});
  builder.Output("none", none);
  builder.Output("one", one);
  const Graph graph = *builder.Build();
  Folded folded(graph);
  EXPECT_EQ(folded.Rounded(none).shape(), (Shape{0, 3}));
  EXPECT_EQ(folded.Rounded(one),
            Tensor::FromDoubles({DType::kF32, {1, 1}}, std::vector<double>{6}));
}

/// Packing reads a view after the value was rounded and its doubles were forgotten.
TEST(Folded, AViewOutlivesTheExactValue) {
  GraphBuilder builder("view");
  const Shape shape = {1024, 300};  // large: its doubles are not kept beside the rounded tensor
  const std::vector<double> values(static_cast<size_t>(NumElements(shape)), 1.25);
  const ValueId weights = builder.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), "w");
  const ValueId sum = *builder.Add("Add", {weights, weights});
  builder.Output("y", sum);
  const Graph graph = *builder.Build();
  Folded folded(graph);
  const WeightView view = folded.View(sum);
  folded.Rounded(sum);
  view.Visit([&](const auto* at) {
    for (size_t i = 0; i < view.size(); ++i) ASSERT_EQ(at[i], 2.5);
  });
}

}  // namespace
}  // namespace mendel::cpu
