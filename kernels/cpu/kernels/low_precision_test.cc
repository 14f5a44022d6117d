// Contractions in bf16 and bf16x3 against their operators' own definitions in double, within what
// rounding both operands may do.

#include "kernels/cpu/kernels/low_precision.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random.h"
#include "base/status.h"
#include "graph/random_graph.h"
#include "graph/sample_node.h"
#include "gtest/gtest.h"
#include "kernels/cpu/kernels/copy.h"
#include "kernels/cpu/lowering/integer_product.h"
#include "kernels/cpu/lowering/lowering.h"
#include "kernels/cpu/testing/low_precision_case.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kCases = 20;  // five times as slow there
#else
constexpr uint64_t kCases = 60;
#endif

TEST(LowPrecision, OfferedOnlyInItsClassAndWhereTheMachineHasIt) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {4, 64}});
  const ValueId w = builder.Constant(Tensor::Filled({DType::kF32, {64, 32}}, 0.1), "w");
  const ValueId v = builder.Input("v", {DType::kF32, {32, 16}});
  const ValueId h = *builder.Add("MatMul", {x, w});
  const ValueId y = *builder.Add("MatMul", {h, v});
  builder.Output("y", y);
  const Graph graph = *builder.Build();
  const Backend& backend = *FindBackend("cpu");
  for (const Numerics numerics : kAllNumerics) {
    const std::vector<std::string> names = backend.Algorithms(graph, h.node, numerics);
    const std::vector<std::string> dynamic = backend.Algorithms(graph, y.node, numerics);
    CompileOptions options;
    options.numerics = numerics;
    EXPECT_TRUE(backend.Compile(graph, options).ok());
    for (const Precision& precision : {kBf16, kBf16x3}) {
      SCOPED_TRACE(testing::Message() << precision.algorithm << " in " << NumericsName(numerics));
      const bool expected = Allows(numerics, precision.numerics) && MultipliesBf16();
      const bool offered =
          expected && (precision.algorithm != kBf16x3Algorithm || MultipliesBf16Tiles());
      EXPECT_EQ(std::count(names.begin(), names.end(), precision.algorithm), offered ? 1 : 0);
      EXPECT_EQ(std::count(dynamic.begin(), dynamic.end(), precision.algorithm), 0)
          << "weights that are not constant";
      options.algorithms[h.node] = precision.algorithm;
      const auto code = expected ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument;
      EXPECT_EQ(backend.Compile(graph, options).status().code(), code);
    }
    const bool in_bf16 = numerics == Numerics::kBf16 || numerics == Numerics::kHigh;
    const bool supported = numerics == Numerics::kInt8 ? MultipliesInt8()
                           : in_bf16                   ? MultipliesBf16()
                                                       : OperandRounding(numerics) == 0;
    EXPECT_EQ(backend.Supports(numerics).ok(), supported) << NumericsName(numerics);
  }
}

class LowPrecisionClass : public testing::TestWithParam<Precision> {};
INSTANTIATE_TEST_SUITE_P(Each, LowPrecisionClass, testing::Values(kBf16, kBf16x3),
                         [](const auto& info) { return std::string(info.param.algorithm); });

TEST_P(LowPrecisionClass, EveryContractionWithinItsRoundings) {
  MENDEL_SKIP_WITHOUT_BF16();
  std::map<std::string, int> ran;
  std::map<std::string, double> share;
  for (const OpDefinition* op : AllOps()) {
    if (op->sample == nullptr) continue;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      Rng rng(seed);
      const absl::StatusOr<SampledNode> node = SampleNode(*op, rng);
      ASSERT_TRUE(node.ok()) << node.status();
      if (node->inputs.size() < 2 || node->outputs.size() != 1) continue;
      SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << DescribeNode(*node));
      std::vector<HostValue> values = SampleInputs(*node, rng, 4096);
      for (HostValue& value : values) value = HostValue::FromTensor(value.ToTensor());
      const std::vector<Layer> layers = {
          {op, node->attrs, {values.begin() + 1, values.end()}, rng.Flip()}};
      const Graph graph = Chain({{op, node->attrs, layers[0].weights, false}}, node->inputs[0]);
      if (In(GetParam(), graph).algorithms.empty()) continue;
      double& largest = share[std::string(op->name)];
      largest = std::max(largest, ExpectWithinBound(GetParam(), layers, values[0],
                                                    static_cast<int>(rng.Between(1, 2))));
      if (testing::Test::HasFailure()) return;
      ++ran[std::string(op->name)];
    }
  }
  EXPECT_GT(ran["Conv"], 10);
  EXPECT_GT(ran["ConvTranspose"], 2);
  EXPECT_GT(ran["MatMul"], 10);
  for (const auto& [name, count] : ran)
    std::cout << count << " x " << name << ": " << share[name] << " of the bound at most\n";
}

/// Layers that have the algorithm: all of them, or all without groups.
size_t Offered(const Precision& precision, const std::vector<Layer>& layers) {
  return static_cast<size_t>(std::count_if(layers.begin(), layers.end(), [&](const Layer& layer) {
    return precision.algorithm == kBf16Algorithm || layer.op->name != "Conv" ||
           layer.attrs.Int("group") == 1;
  }));
}

TEST_P(LowPrecisionClass, ChainsWithinTheirRoundings) {
  MENDEL_SKIP_WITHOUT_BF16();
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    Rng rng(seed);
    HostValue x;
    const std::vector<Layer> layers =
        LayersBuilder(rng, false).Build(static_cast<int>(rng.Between(1, 3)), x);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    EXPECT_EQ(In(GetParam(), Chain(layers, x.type)).algorithms.size(), Offered(GetParam(), layers));
    ExpectWithinBound(GetParam(), layers, x, static_cast<int>(rng.Between(1, 2)));
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(LowPrecisionClass, WholeNumbersAreExact) {
  MENDEL_SKIP_WITHOUT_BF16();
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    HostValue x;
    const std::vector<Layer> layers = LayersBuilder(rng, true).Build(2, x);
    for (const bool kept : {false, true}) {
      const Graph graph = Chain(layers, x.type, kept);
      const CompileOptions options = In(GetParam(), graph, static_cast<int>(rng.Between(1, 2)));
      EXPECT_EQ(options.algorithms.size(), Offered(GetParam(), layers));
      ExpectMatches(graph, {x}, options, 0);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(LowPrecision, SixteenBitsOfAnOperandAreExactInHigh) {
  MENDEL_SKIP_WITHOUT_BF16();
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    HostValue x;
    std::vector<Layer> layers = LayersBuilder(rng, true).Build(1, x);
    const bool in_source = rng.Flip();
    for (double& scalar : in_source ? x.scalars : layers[0].weights[0].scalars)
      scalar *= static_cast<double>(rng.Between(1, 0x3fff));
    const Graph graph = Chain(layers, x.type);
    ExpectMatches(graph, {x}, In(kBf16x3, graph, static_cast<int>(rng.Between(1, 2))), 0);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(LowPrecision, ValuesBetweenProductsStayNarrow) {
  MENDEL_SKIP_WITHOUT_BF16();
  Rng rng(1);
  const auto weights = [&](int64_t rows, int64_t columns) {
    HostValue value{{DType::kF32, {rows, columns}}, {}, {}};
    for (int64_t i = rows * columns; i > 0; --i)
      value.scalars.push_back(static_cast<double>(rng.Between(-1, 1)));
    return value;
  };
  const std::vector<Layer> layers = {{FindOp("MatMul"), {}, {weights(32, 64)}, true},
                                     {FindOp("MatMul"), {}, {weights(64, 16)}, false}};
  const TensorType type{DType::kF32, {8, 32}};
  const auto steps = [&](bool kept, bool mixed = false) {
    const Graph graph = Chain(layers, type, kept);
    CompileOptions options = In(kBf16, graph);
    if (mixed) options.algorithms.rbegin()->second = kBf16x3Algorithm;
    const auto executable = FindBackend("cpu")->Compile(graph, options);
    EXPECT_TRUE(executable.ok()) << executable.status();
    return (*executable)->steps();
  };
  // The source is rounded. A value that is read elsewhere is f32 and rounded for the product only.
  EXPECT_EQ(steps(false).size(), 3u) << Description(steps(false));
  EXPECT_EQ(steps(true).size(), 4u) << Description(steps(true));
  // A reader of class bf16x3 needs the value unrounded.
  EXPECT_EQ(steps(false, true).size(), 4u) << Description(steps(false, true));
}

/// Machines with AMX use it instead of AVX512_BF16's products. The other tests then measure AMX.
TEST(LowPrecision, MultipliesByAmxWhereItIs) {
  const std::string isa = FindBackend("cpu")->Isa();
  if (isa.find("amx") == std::string::npos)
    GTEST_SKIP() << "no AMX here (or oneDNN is limited to less): " << isa;
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {1, 64, 28, 28}});
  const ValueId w = builder.Constant(Tensor::Filled({DType::kF32, {64, 64, 3, 3}}, 0.1), "w");
  builder.Output(
      "y", *builder.Add(
               "Conv", {x, w},
               {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}}));
  const Graph graph = *builder.Build();
  const auto program = FindBackend("cpu")->Compile(graph, In(kBf16, graph));
  ASSERT_TRUE(program.ok()) << program.status();
  std::string kernels;
  for (const Step& step : (*program)->steps()) kernels += step.kernel + "; ";
  EXPECT_NE(kernels.find("amx"), std::string::npos) << kernels;
}

TEST(LowPrecision, NarrowValuesAreWidenedForWhoWantsThem) {
  GraphBuilder builder;
  const TensorType type{DType::kF32, {2, 20, 5}};
  const ValueId x = builder.Input("x", type);
  const ValueId y = *builder.Add("Relu", {x});
  builder.Output("y", y);
  const Graph graph = *builder.Build();
  const CompileOptions options;
  for (const Layout& layout :
       {PlainLayout(type.shape), BlockedLayout(type.shape, 16), ChannelsLastLayout(type.shape)}) {
    // The ReLU's value is computed from the rounded input.
    Lowering lowering(graph, options);
    const Place from = lowering.NarrowIn(x, layout), again = lowering.NarrowIn(x, layout),
                to = lowering.AllocateNarrow(y, layout);
    EXPECT_EQ(from.buffer, again.buffer);
    const int64_t span = Span(layout, type.shape);
    lowering.Emit({y.node}, "copy",
                  MakeCopyKernel({{from, to, {span}, {1}, {1}}}, DTypeSize(DType::kBF16)),
                  {from, to});
    absl::StatusOr<Program> program = lowering.Finish();
    ASSERT_TRUE(program.ok()) << program.status();
    auto executable = MakeExecutable(*std::move(program));
    ASSERT_TRUE(executable.ok()) << executable.status();
    Rng rng(7);
    const Tensor source = RandomInputs(rng, graph)[0].ToTensor();
    const auto results = RunOnTensors(**executable, graph, {{source}});
    ASSERT_TRUE(results.ok()) << results.status();
    for (int64_t i = 0; i < source.size(); ++i) {
      ASSERT_EQ((*results)[0].DoubleAt(i), RoundTo(DType::kBF16, source.DoubleAt(i)))
          << "element " << i;
    }
  }
}

}  // namespace
}  // namespace mendel::cpu
