// Dense blocks: concatenations of several images that continue each other. Native kernels compute
// their parts in place and read them with the other parts between their images.

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/random_graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

class DenseBlock {
 public:
  explicit DenseBlock(Rng& rng) : rng_(rng), builder_("dense block") {}

  /// `mixed`: some parts and readers accept dense values only, and some channels are no whole
  /// vectors.
  Graph Build(bool mixed) {
    // The least extents for which every layer has a Winograd kernel.
    const int64_t least = mixed ? 3 : 8;
    const Shape shape = {rng_.Between(2, 3), 16, rng_.Between(least, 9), rng_.Between(least, 9)};
    ValueId whole = Conv(builder_.Input("x", {DType::kF32, shape}), 16, 3);
    std::vector<ValueId> parts = {whole};
    const bool flat = rng_.Flip();
    for (int64_t k = rng_.Between(2, 4); k > 0; --k) {
      const ValueId narrow = Conv(Add("Relu", {Normalize(whole)}), 32, 1);
      ValueId part = Conv(narrow, mixed && rng_.Flip(0.2) ? 20 : 16, 3);
      if (mixed && rng_.Flip(0.2))
        part = Add("Add", {part, Conv(narrow, builder_.type(part).shape[1], 1)});
      if (mixed && rng_.Flip(0.2)) part = Add("Tanh", {part});
      parts.push_back(part);
      whole =
          Add("Concat", flat ? parts : std::vector<ValueId>{whole, part}, {{"axis", int64_t{1}}});
      if (mixed && rng_.Flip(0.2)) builder_.Output(Cat("whole", k), whole);
      if (mixed && rng_.Flip(0.2)) builder_.Output(Cat("pooled", k), Pool(whole));
      if (mixed && rng_.Flip(0.2)) builder_.Output(Cat("direct", k), Conv(whole, 16, 1));
      if (mixed && rng_.Flip(0.2))
        builder_.Output(Cat("again", k), Add("Concat", {part, whole}, {{"axis", int64_t{1}}}));
    }
    builder_.Output("y", Add("Relu", {Normalize(whole)}));
    return *builder_.Build();
  }

 private:
  ValueId Add(std::string_view op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    return *builder_.Add(op, std::move(inputs), std::move(attrs));
  }

  ValueId Weight(Shape shape, double least, double most) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = rng_.Uniform(least, most);
    return builder_.Constant(Tensor::FromDoubles({DType::kF32, std::move(shape)}, values),
                             Cat("w", weights_++));
  }

  ValueId Conv(ValueId x, int64_t out, int64_t kernel) {
    const int64_t pad = kernel / 2, in = builder_.type(x).shape[1];
    return Add(
        "Conv", {x, Weight({out, in, kernel, kernel}, -0.3, 0.3), Weight({out}, -1, 1)},
        {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{pad, pad, pad, pad}}});
  }

  ValueId Normalize(ValueId x) {
    const Shape channels = {builder_.type(x).shape[1]};
    return Add("BatchNormalization", {x, Weight(channels, 0.5, 1), Weight(channels, -1, 1),
                                      Weight(channels, -1, 1), Weight(channels, 0.5, 1)});
  }

  ValueId Pool(ValueId x) {
    return Add("MaxPool", {x},
               {{"kernel_shape", Ints{2, 2}},
                {"strides", Ints{1, 1}},
                {"dilations", Ints{1, 1}},
                {"pads", Ints{0, 0, 0, 0}}});
  }

  Rng& rng_;
  GraphBuilder builder_;
  int weights_ = 0;
};

/// One of our kernels for every convolution that has one, with this probability.
CompileOptions NativeKernels(const Graph& graph, Rng& rng, double probability) {
  CompileOptions options;
  options.threads = static_cast<int>(rng.Between(1, 2));
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    for (const std::string& name : FindBackend("cpu")->Algorithms(graph, id, Numerics::kDefault)) {
      const bool own = name == "pointwise-own" || name == "winograd-own:2";
      if (own && rng.Flip(probability)) options.algorithms[id] = name;
    }
  }
  return options;
}

TEST(CpuConcat, DenseBlocksOfSeveralImagesAreInPlace) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Graph graph = DenseBlock(rng).Build(false);
    const CompileOptions options = NativeKernels(graph, rng, 1);
    if (options.algorithms.empty()) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
    int in_place = 0;
    for (const std::string& kernel :
         ExpectMatches(graph, RandomInputs(rng, graph), options, 1e-4)) {
      EXPECT_NE(kernel.substr(0, 4), "copy");
      in_place += kernel == "in place";
    }
    const auto is_concat = [](const Node& node) { return node.op->name == "Concat"; };
    EXPECT_EQ(in_place, std::count_if(graph.nodes().begin(), graph.nodes().end(), is_concat));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(CpuConcat, PartsAndReadersOfEveryKind) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Graph graph = DenseBlock(rng).Build(true);
    const CompileOptions options = NativeKernels(graph, rng, 0.7);
    ExpectMatches(graph, RandomInputs(rng, graph), options, 1e-4);
    if (testing::Test::HasFailure()) return;
  }
}

/// With one position, blocks of channels and row-major order coincide. The reader of a native
/// kernel's result uses its own description of the layout.
TEST(CpuConcat, OnePositionIsReadAsItsReaderSaysItLies) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    GraphBuilder builder("one position");
    const int64_t images = rng.Between(1, 3), in = rng.Flip() ? 64 : 24;
    const ValueId x = builder.Input("x", {DType::kF32, {images, in, 1, 1}});
    std::vector<double> weights(static_cast<size_t>(32 * in));
    for (double& weight : weights) weight = rng.Uniform(-1, 1);
    const ValueId w =
        builder.Constant(Tensor::FromDoubles({DType::kF32, {32, in, 1, 1}}, weights), "w");
    const ValueId y = *builder.Add(
        "Conv", {x, w},
        {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}});
    const ValueId other = builder.Input("other", {DType::kF32, {images, 8, 1, 1}});
    builder.Output("whole", *builder.Add("Concat", {y, other}, {{"axis", int64_t{1}}}));
    if (rng.Flip())
      builder.Output("again", *builder.Add("Concat", {other, y}, {{"axis", int64_t{1}}}));
    if (rng.Flip()) {
      const Attributes half = {{"starts", Ints{0, 16, 0, 0}},
                               {"ends", Ints{images, 32, 1, 1}},
                               {"steps", Ints{1, 1, 1, 1}}};
      builder.Output("half", *builder.Add("Slice", {y}, half));
    }
    if (rng.Flip())
      builder.Output("turned", *builder.Add("Transpose", {y}, {{"perm", Ints{1, 0, 2, 3}}}));
    const Graph graph = *builder.Build();
    ExpectMatches(graph, RandomInputs(rng, graph), NativeKernels(graph, rng, 1), 1e-4);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace mendel::cpu
