// Tests of parts and reordered shapes of values: they are read where they lie, or copied once into
// the reader's layout.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/random_graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

class Net {
 public:
  explicit Net(Rng& rng) : rng_(rng), builder_("split") {}

  ValueId Input(Shape shape) {
    return builder_.Input(Cat("x", values_++), {DType::kF32, std::move(shape)});
  }
  void Output(ValueId value) { builder_.Output(Cat("y", values_++), value); }
  Graph Build() { return *builder_.Build(); }
  const Shape& shape(ValueId value) const { return builder_.type(value).shape; }

  ValueId Add(std::string_view op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    return *builder_.Add(op, std::move(inputs), std::move(attrs));
  }
  ValueId Weight(Shape shape) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = rng_.Uniform(-0.3, 0.3);
    return builder_.Constant(Tensor::FromDoubles({DType::kF32, std::move(shape)}, values),
                             Cat("w", values_++));
  }
  ValueId Conv(ValueId x, int64_t out, int64_t kernel) {
    const int64_t pad = kernel / 2;
    return Add(
        "Conv", {x, Weight({out, shape(x)[1], kernel, kernel})},
        {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{pad, pad, pad, pad}}});
  }
  ValueId Reshape(ValueId x, Ints to) { return Add("Reshape", {x}, {{"shape", std::move(to)}}); }
  ValueId Transpose(ValueId x, Ints perm) {
    return Add("Transpose", {x}, {{"perm", std::move(perm)}});
  }
  std::vector<ValueId> Split(ValueId x, int64_t axis, Ints sizes) {
    const int32_t parts = static_cast<int32_t>(sizes.size());
    const int32_t node =
        *builder_.AddNode("Split", {x}, {{"axis", axis}, {"sizes", std::move(sizes)}});
    std::vector<ValueId> all;
    for (int32_t k = 0; k < parts; ++k) all.push_back({node, k});
    return all;
  }
  ValueId Concat(std::vector<ValueId> parts) {
    return Add("Concat", std::move(parts), {{"axis", int64_t{1}}});
  }
  /// The channels of `groups` groups in turn.
  ValueId Shuffle(ValueId x, int64_t groups) {
    const Shape s = shape(x);
    const ValueId cut = Reshape(x, {s[0], groups, s[1] / groups, s[2], s[3]});
    return Reshape(Transpose(cut, {0, 2, 1, 3, 4}), {s[0], s[1], s[2], s[3]});
  }

 private:
  Rng& rng_;
  GraphBuilder builder_;
  int values_ = 0;
};

int64_t Copies(const std::vector<std::string>& kernels) {
  return CountOf(kernels, "copy") + CountOf(kernels, "reorder");
}

TEST(CpuSplit, ShuffledHalvesAreCopiedOnceEach) {
  Rng rng(1);
  Net net(rng);
  const ValueId x = net.Input({1, 24, 5, 6});
  const std::vector<ValueId> halves = net.Split(net.Shuffle(net.Add("Tanh", {x}), 2), 1, {12, 12});
  net.Output(net.Concat({halves[0], net.Add("Relu", {halves[1]})}));
  const Graph graph = net.Build();
  // One half on its way to the ReLU, which computes its part in place, and one into the
  // concatenation.
  const std::vector<std::string> wanted = {"tile Tanh", "copy", "tile Relu", "copy 1 of 2"};
  EXPECT_EQ(ExpectMatches(graph, RandomInputs(rng, graph), {}), wanted);
}

TEST(CpuSplit, PartsOfAProductAreReadWhereTheyLie) {
  Rng rng(2);
  Net net(rng);
  const ValueId product = net.Add("MatMul", {net.Input({1, 7, 16}), net.Weight({16, 3 * 16})});
  for (const ValueId part : net.Split(product, 2, {16, 16, 16})) {
    net.Output(net.Add("Neg", {net.Transpose(net.Reshape(part, {1, 7, 2, 8}), {0, 2, 1, 3})}));
  }
  const Graph graph = net.Build();
  const std::vector<std::string> kernels = ExpectMatches(graph, RandomInputs(rng, graph), {});
  EXPECT_EQ(CountOf(kernels, "tile Neg"), 3);
  EXPECT_EQ(Copies(kernels), 0);
}

/// Names the algorithm for every convolution that has it.
CompileOptions WithAlgorithm(const Graph& graph, const std::string& name) {
  CompileOptions options;
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    const std::vector<std::string> known =
        FindBackend("cpu")->Algorithms(graph, id, Numerics::kDefault);
    if (std::find(known.begin(), known.end(), name) != known.end()) options.algorithms[id] = name;
  }
  return options;
}

TEST(CpuSplit, BlocksOfChannelsAreReadWhereTheyLie) {
  for (const int64_t images : {1, 3}) {
    SCOPED_TRACE(testing::Message() << images << " images");
    Rng rng(3);
    Net net(rng);
    const ValueId x = net.Conv(net.Input({images, 16, 9, 8}), 48, 3);
    for (const ValueId part : net.Split(x, 1, {16, 32})) net.Output(net.Conv(part, 16, 3));
    const Graph graph = net.Build();
    const CompileOptions options = WithAlgorithm(graph, "winograd-own:2");
    if (options.algorithms.empty()) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
    // The input and two outputs, which are row-major.
    const std::vector<std::string> kernels =
        ExpectMatches(graph, RandomInputs(rng, graph), options, 1e-4);
    EXPECT_EQ(Copies(kernels), 3) << testing::PrintToString(kernels);
  }
}

/// Chains of views between kernels of every kind.
Graph RandomViews(Rng& rng) {
  Net net(rng);
  const int64_t channels = rng.Flip() ? 16 * rng.Between(1, 3) : 2 * rng.Between(2, 9);
  std::vector<ValueId> images = {
      net.Conv(net.Input({rng.Between(1, 2), channels, 4, 6}), channels, 3)};
  for (int64_t k = rng.Between(3, 8); k > 0; --k) {
    const ValueId x = images[rng.Below(images.size())];
    const Shape s = net.shape(x);
    const uint64_t kind = rng.Below(8);
    if (kind == 0) images.push_back(net.Conv(x, rng.Flip() ? 16 : 12, rng.Flip() ? 1 : 3));
    if (kind == 1) images.push_back(net.Add(rng.Flip() ? "Relu" : "Tanh", {x}));
    if (kind == 2 && s[1] % 2 == 0) images.push_back(net.Shuffle(x, 2));
    if (kind == 3 && s[1] > 1) {
      const int64_t first =
          s[1] % 16 == 0 && s[1] > 16 && rng.Flip() ? 16 : rng.Between(1, s[1] - 1);
      for (const ValueId part : net.Split(x, 1, {first, s[1] - first})) images.push_back(part);
    }
    if (kind == 4) images.push_back(net.Concat({x, images[rng.Below(images.size())]}));
    if (kind == 5) {
      const int64_t rows = rng.Between(0, 2);
      const ValueId part = net.Add("Slice", {x},
                                   {{"starts", Ints{0, 0, rows, 5}},
                                    {"ends", Ints{s[0], s[1], 4, -1}},
                                    {"steps", Ints{1, 1, 1, -1}}});
      net.Output(net.Add("Neg", {part}));
    }
    if (kind == 6) {
      const ValueId rows = net.Transpose(net.Reshape(x, {s[0], s[1], s[2] * s[3]}), {0, 2, 1});
      net.Output(net.Add("MatMul", {rows, net.Weight({s[1], 8})}));
    }
    if (kind == 7)
      images.push_back(net.Reshape(net.Transpose(net.Reshape(x, {s[0], s[1], 2, 12}), {0, 1, 3, 2}),
                                   {s[0], s[1], 4, 6}));
  }
  net.Output(images.back());
  net.Output(net.Add("Softmax", {images[rng.Below(images.size())]}, {{"axis", int64_t{1}}}));
  return net.Build();
}

TEST(CpuSplit, ViewsOfViewsMatchTheDefinition) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Graph graph = RandomViews(rng);
    CompileOptions options = WithAlgorithm(graph, rng.Flip() ? "winograd-own:2" : "pointwise-own");
    options.threads = static_cast<int>(rng.Between(1, 2));
    ExpectMatches(graph, RandomInputs(rng, graph), options, 1e-4);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace mendel::cpu
