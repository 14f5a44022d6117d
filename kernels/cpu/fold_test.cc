#include "kernels/cpu/fold.h"

#include <vector>

#include "base/random.h"
#include "graph/evaluate.h"
#include "gtest/gtest.h"
#include "kernels/cpu/weight_view.h"

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
        for (int64_t i = 0; i < tensor.size(); ++i) ASSERT_EQ(static_cast<double>(view[i]), tensor.DoubleAt(i));
      });
    }
    EXPECT_EQ(folded.Rounded(value), wanted[0].ToTensor());
  }
}

}  // namespace
}  // namespace mendel::cpu
