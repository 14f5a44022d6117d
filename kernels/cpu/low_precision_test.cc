// Contractions in bf16 and bf16x3 against their operators' own definitions in double, within what rounding both operands may do.

#include "kernels/cpu/low_precision.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random.h"
#include "base/status.h"
#include "graph/random_graph.h"
#include "graph/sample_node.h"
#include "gtest/gtest.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/test_support.h"

namespace mendel::cpu {
namespace {

struct Precision {
  std::string_view algorithm;
  Numerics numerics;
  double product;  ///< largest relative error of one product of two rounded operands
  int parts;       ///< terms summed for it
};
constexpr double kRounding = 0x1p-8;  // of one operand: bf16 has eight bits
constexpr Precision kBf16 = {kBf16Algorithm, Numerics::kBf16, 2 * kRounding + kRounding* kRounding, 1};
/// Both operands are wrong by the rounding of what a rounding left, and the product of the two low parts is missing.
constexpr Precision kBf16x3 = {kBf16x3Algorithm, Numerics::kHigh, 3.02 * kRounding* kRounding, 3};

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kCases = 20;  // five times as slow there
#else
constexpr uint64_t kCases = 60;
#endif

/// Every node that can be one runs in it.
CompileOptions In(const Precision& precision, const Graph& graph, int threads = 1) {
  CompileOptions options;
  options.threads = threads;
  options.numerics = precision.numerics;
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    const std::vector<std::string> names = FindBackend("cpu")->Algorithms(graph, id, precision.numerics);
    if (std::count(names.begin(), names.end(), precision.algorithm) != 0) options.algorithms[id] = precision.algorithm;
  }
  return options;
}

/// One contraction with constant weights, then perhaps a ReLU.
struct Layer {
  const OpDefinition* op = nullptr;
  Attributes attrs;
  std::vector<HostValue> weights;  ///< and bias
  bool relu = false;
};

HostValue Absolute(HostValue value) {
  for (double& scalar : value.scalars) scalar = std::fabs(scalar);
  return value;
}

/// By the operator's definition: the layer without its ReLU; `bound`, with the absolute weights and no bias.
HostValue Linear(const Layer& layer, const HostValue& x, bool bound) {
  GraphBuilder builder;
  std::vector<ValueId> inputs = {builder.Input("x", x.type)};
  std::vector<HostValue> values = {x};
  for (size_t k = 0; k < layer.weights.size(); ++k) {
    if (bound && k == 1) continue;
    inputs.push_back(builder.Input(Cat("w", k), layer.weights[k].type));
    values.push_back(bound ? Absolute(layer.weights[k]) : layer.weights[k]);
  }
  builder.Output("y", *builder.Add(layer.op->name, inputs, layer.attrs));
  return std::move((*Evaluate(*builder.Build(), values))[0]);
}

/// The layers one after the other; `kept`: the values between them are outputs, too, and hence f32.
Graph Chain(const std::vector<Layer>& layers, const TensorType& type, bool kept = false) {
  GraphBuilder builder;
  ValueId x = builder.Input("x", type);
  for (size_t l = 0; l < layers.size(); ++l) {
    std::vector<ValueId> inputs = {x};
    for (size_t k = 0; k < layers[l].weights.size(); ++k) {
      inputs.push_back(builder.Constant(layers[l].weights[k].ToTensor(), Cat("w", l, "_", k)));
    }
    x = *builder.Add(layers[l].op->name, inputs, layers[l].attrs, Cat("layer", l));
    if (layers[l].relu) x = *builder.Add("Relu", {x});
    if (kept && l + 1 < layers.size()) builder.Output(Cat("kept", l), x);
  }
  builder.Output("y", x);
  return *builder.Build();
}

std::string Told(const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps) text += Cat(step.name, " [", step.kernel, "]; ");
  return text;
}

/// Largest number of products in a sum.
int64_t Depth(const Layer& layer) {
  const Shape& shape = layer.weights[0].type.shape;
  if (layer.op->name == "MatMul") return shape[shape.size() - 2];
  return NumElements(shape) / shape[layer.op->name == "Conv" ? 0 : 1];
}

/// The chain by its definition, and what the roundings may be wrong by in each element: an operand is wrong by what the layer
/// before leaves and its own rounding, a product by that and the weight's rounding, and sums add the absolute errors up.
struct Bounded {
  HostValue exact, error;
};
Bounded Bound(const Precision& precision, const std::vector<Layer>& layers, const HostValue& x) {
  Bounded bounded{x, x};
  std::fill(bounded.error.scalars.begin(), bounded.error.scalars.end(), 0.0);
  for (const Layer& layer : layers) {
    HostValue& exact = bounded.exact;
    HostValue& error = bounded.error;
    const double relative = precision.product + 0x1p-23 * static_cast<double>(precision.parts * Depth(layer));
    for (size_t i = 0; i < error.scalars.size(); ++i) {
      error.scalars[i] = relative * std::fabs(exact.scalars[i]) + (1 + relative) * error.scalars[i];
    }
    error = Linear(layer, error, true);
    exact = Linear(layer, exact, false);
    for (size_t i = 0; i < exact.scalars.size(); ++i) {
      error.scalars[i] += 0x1p-22 * std::fabs(exact.scalars[i]) + 0x1p-100;  // bias and store; denormals may be zero
      if (layer.relu) exact.scalars[i] = std::max(exact.scalars[i], 0.0);
    }
  }
  return bounded;
}

/// Runs the chain and compares each element with double. Returns the largest share of its bound.
double ExpectWithinBound(const Precision& precision, const std::vector<Layer>& layers, const HostValue& x, int threads) {
  const Graph graph = Chain(layers, x.type);
  const auto executable = FindBackend("cpu")->Compile(graph, In(precision, graph, threads));
  EXPECT_TRUE(executable.ok()) << executable.status();
  SCOPED_TRACE(Told((*executable)->steps()));
  const auto results = RunOnTensors(**executable, graph, {{x.ToTensor()}});
  EXPECT_TRUE(results.ok()) << results.status();
  const Bounded bounded = Bound(precision, layers, x);
  double largest = 0;
  for (int64_t i = 0; i < (*results)[0].size(); ++i) {
    const double difference = std::fabs((*results)[0].DoubleAt(i) - bounded.exact.At(i));
    EXPECT_LE(difference, bounded.error.At(i)) << "element " << i;
    if (testing::Test::HasFailure()) break;
    largest = std::max(largest, difference / bounded.error.At(i));
  }
  return largest;
}

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
      EXPECT_EQ(std::count(names.begin(), names.end(), precision.algorithm), expected ? 1 : 0);
      EXPECT_EQ(std::count(dynamic.begin(), dynamic.end(), precision.algorithm), 0) << "weights that are not constant";
      options.algorithms[h.node] = precision.algorithm;
      const auto code = expected ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument;
      EXPECT_EQ(backend.Compile(graph, options).status().code(), code);
    }
    const bool in_bf16 = numerics == Numerics::kBf16 || numerics == Numerics::kHigh;
    EXPECT_EQ(backend.Supports(numerics).ok(), in_bf16 ? MultipliesBf16() : OperandRounding(numerics) == 0)
        << NumericsName(numerics);
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
      const std::vector<Layer> layers = {{op, node->attrs, {values.begin() + 1, values.end()}, rng.Flip()}};
      const Graph graph = Chain({{op, node->attrs, layers[0].weights, false}}, node->inputs[0]);
      if (In(GetParam(), graph).algorithms.empty()) continue;
      double& largest = share[std::string(op->name)];
      largest = std::max(largest, ExpectWithinBound(GetParam(), layers, values[0], static_cast<int>(rng.Between(1, 2))));
      if (testing::Test::HasFailure()) return;
      ++ran[std::string(op->name)];
    }
  }
  EXPECT_GT(ran["Conv"], 10);
  EXPECT_GT(ran["ConvTranspose"], 2);
  EXPECT_GT(ran["MatMul"], 10);
  for (const auto& [name, count] : ran) std::cout << count << " x " << name << ": " << share[name] << " of the bound at most\n";
}

/// Layers that fit each other: convolutions of any kind with their extents kept, transposed ones that double them, or products.
class LayersBuilder {
 public:
  /// `whole`: numbers so small and so few that every value of up to two layers is a whole number of at most eight bits.
  LayersBuilder(Rng& rng, bool whole) : rng_(rng), whole_(whole) {}

  std::vector<Layer> Build(int count, HostValue& x) {
    std::vector<Layer> layers;
    if (rng_.Flip(0.3)) {
      x = Value({rng_.Between(1, 3), rng_.Between(1, 20), rng_.Between(1, 60)});
      for (Shape shape = x.type.shape; count > 0; --count) layers.push_back(Product(shape));
      return layers;
    }
    Shape shape = {rng_.Between(1, 2), Channels()};
    const int64_t spatial = rng_.Between(1, 3);
    for (int64_t d = 0; d < spatial; ++d) shape.push_back(rng_.Between(2, spatial == 3 ? 4 : 9));
    x = Value(shape);
    for (; count > 0; --count) layers.push_back(rng_.Flip(0.2) && shape[2] < 10 ? Transposed(shape) : Convolution(shape));
    return layers;
  }

 private:
  int64_t Channels() {
    constexpr int64_t kChoices[] = {3, 8, 16, 20, 32, 48};
    return kChoices[rng_.Below(std::size(kChoices))];
  }

  HostValue Value(const Shape& shape) {
    HostValue value{{DType::kF32, shape}, {}, {}};
    for (int64_t i = NumElements(shape); i > 0; --i) {
      // Mostly zeros: sums of whole numbers stay below 256.
      const double number = static_cast<double>(rng_.Flip(0.1) ? rng_.Between(-2, 2) : 0);
      value.scalars.push_back(whole_ ? number : static_cast<double>(static_cast<float>(rng_.Normal())));
    }
    return value;
  }

  Layer Finish(std::string_view op, Attributes attrs, const Shape& weights, int64_t channels) {
    Layer layer{FindOp(op), std::move(attrs), {Value(weights)}, rng_.Flip()};
    if (op != "MatMul" && rng_.Flip()) layer.weights.push_back(Value({channels}));
    return layer;
  }

  Layer Product(Shape& shape) {
    const Shape weights = {shape.back(), rng_.Between(1, 70)};
    shape.back() = weights[1];
    return Finish("MatMul", {}, weights, 0);
  }

  Layer Convolution(Shape& shape) {
    int64_t out = Channels(), group = 1;
    if (rng_.Flip(0.2)) out = group = shape[1];
    if (rng_.Flip(0.2) && shape[1] % 4 == 0) out = shape[1], group = 4;
    Shape weights = {out, shape[1] / group};
    Ints strides, dilations, begin, end;
    for (size_t d = 2; d < shape.size(); ++d) {
      weights.push_back(rng_.Between(1, 3));
      dilations.push_back(rng_.Between(1, 2));
      strides.push_back(rng_.Flip(0.2) ? 2 : 1);
      const int64_t reach = (weights[d] - 1) * dilations.back();
      begin.push_back(reach / 2);
      end.push_back(reach - reach / 2);
      shape[d] = (shape[d] - 1) / strides.back() + 1;
    }
    shape[1] = out;
    begin.insert(begin.end(), end.begin(), end.end());
    return Finish("Conv", {{"strides", strides}, {"dilations", dilations}, {"pads", begin}, {"group", group}}, weights, out);
  }

  Layer Transposed(Shape& shape) {
    const size_t spatial = shape.size() - 2;
    Shape weights = {shape[1], Channels()};
    for (size_t d = 2; d < shape.size(); ++d) weights.push_back(2), shape[d] *= 2;
    shape[1] = weights[1];
    return Finish("ConvTranspose",
                  {{"strides", Ints(spatial, 2)},
                   {"dilations", Ints(spatial, 1)},
                   {"pads", Ints(2 * spatial, 0)},
                   {"output_padding", Ints(spatial, 0)}},
                  weights, shape[1]);
  }

  Rng& rng_;
  bool whole_;
};

/// Layers that have the algorithm: all of them, or all without groups.
size_t Offered(const Precision& precision, const std::vector<Layer>& layers) {
  return static_cast<size_t>(std::count_if(layers.begin(), layers.end(), [&](const Layer& layer) {
    return precision.algorithm == kBf16Algorithm || layer.op->name != "Conv" || layer.attrs.Int("group") == 1;
  }));
}

TEST_P(LowPrecisionClass, ChainsWithinTheirRoundings) {
  MENDEL_SKIP_WITHOUT_BF16();
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    Rng rng(seed);
    HostValue x;
    const std::vector<Layer> layers = LayersBuilder(rng, false).Build(static_cast<int>(rng.Between(1, 3)), x);
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
    for (int64_t i = rows * columns; i > 0; --i) value.scalars.push_back(static_cast<double>(rng.Between(-1, 1)));
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
  // The source is rounded; a value that is read elsewhere is f32, and rounded for the product only.
  EXPECT_EQ(steps(false).size(), 3u) << Told(steps(false));
  EXPECT_EQ(steps(true).size(), 4u) << Told(steps(true));
  // One who rounds less wants it whole.
  EXPECT_EQ(steps(false, true).size(), 4u) << Told(steps(false, true));
}

/// What machines with AMX have in place of AVX512_BF16's products; the other tests then measure these.
TEST(LowPrecision, MultipliesByAmxWhereItIs) {
  const std::string isa = FindBackend("cpu")->Isa();
  if (isa.find("amx") == std::string::npos) GTEST_SKIP() << "no AMX here (or oneDNN is limited to less): " << isa;
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {1, 64, 28, 28}});
  const ValueId w = builder.Constant(Tensor::Filled({DType::kF32, {64, 64, 3, 3}}, 0.1), "w");
  builder.Output("y",
                 *builder.Add("Conv", {x, w}, {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}}));
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
  for (const Layout& layout : {PlainLayout(type.shape), BlockedLayout(type.shape, 16), ChannelsLastLayout(type.shape)}) {
    // The ReLU's value is made of the input's, rounded.
    Lowering lowering(graph, options);
    const Place from = lowering.NarrowIn(x, layout), again = lowering.NarrowIn(x, layout), to = lowering.AllocateNarrow(y, layout);
    EXPECT_EQ(from.buffer, again.buffer);
    const int64_t span = Span(layout, type.shape);
    lowering.Emit({y.node}, "copy", MakeCopyKernel({{from, to, {span}, {1}, {1}}}, DTypeSize(DType::kBF16)), {from, to});
    auto executable = MakeExecutable(lowering.Finish());
    ASSERT_TRUE(executable.ok()) << executable.status();
    Rng rng(7);
    const Tensor source = RandomInputs(rng, graph)[0].ToTensor();
    const auto results = RunOnTensors(**executable, graph, {{source}});
    ASSERT_TRUE(results.ok()) << results.status();
    for (int64_t i = 0; i < source.size(); ++i) {
      ASSERT_EQ((*results)[0].DoubleAt(i), RoundTo(DType::kBF16, source.DoubleAt(i))) << "element " << i;
    }
  }
}

}  // namespace
}  // namespace mendel::cpu
