// Contractions with everything that can be fused to them, in random order, under every algorithm,
// against double.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/random.h"
#include "base/status.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cpu/kernels/low_precision.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

/// Random networks of wide layers: convolutions and products with biases, scales, residuals and
/// activations, some of whose values are read elsewhere too.
class NetworkBuilder {
 public:
  explicit NetworkBuilder(Rng& rng) : rng_(rng), builder_("network") {}

  Graph Build() {
    const bool product = rng_.Flip(0.25);
    if (product) {
      ValueId x = builder_.Input(
          "x", {DType::kF32, {rng_.Between(1, 3), rng_.Between(1, 20), Pick({4, 16, 33})}});
      for (int64_t k = rng_.Between(1, 3); k > 0; --k) x = PostOps(MatMul(x));
      builder_.Output("y", x);
    } else {
      spatial_ = static_cast<size_t>(rng_.Flip(0.7) ? 2 : rng_.Between(1, 3));
      Shape shape = {rng_.Between(1, 2), Pick({3, 8, 16, 24, 32})};
      for (size_t d = 0; d < spatial_; ++d)
        shape.push_back(rng_.Between(3, spatial_ == 3 ? 6 : 14));
      ValueId x = builder_.Input("x", {DType::kF32, shape});
      for (int64_t k = rng_.Between(1, 4); k > 0; --k)
        x = rng_.Flip(0.2) ? Branches(x) : PostOps(Conv(x, true));
      if (rng_.Flip(0.3)) x = Pool(x);
      if (rng_.Flip(0.3)) x = Mean(x);
      builder_.Output("y", x);
    }
    for (size_t k = 0; k < kept_.size(); ++k) builder_.Output(Cat("kept", k), kept_[k]);
    return *builder_.Build();
  }

 private:
  int64_t Pick(std::initializer_list<int64_t> choices) {
    return choices.begin()[rng_.Below(choices.size())];
  }

  ValueId Add(std::string_view op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    const absl::StatusOr<ValueId> value = builder_.Add(op, std::move(inputs), std::move(attrs));
    EXPECT_TRUE(value.ok()) << value.status();
    return *value;
  }

  ValueId Weight(Shape shape, double scale) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = rng_.Uniform(-scale, scale);
    return builder_.Constant(Tensor::FromDoubles({DType::kF32, std::move(shape)}, values),
                             Cat("w", weights_++));
  }

  ValueId Conv(ValueId x, bool shrink) {
    const Shape& shape = builder_.type(x).shape;
    const int64_t channels = shape[1];
    int64_t group = 1, out = Pick({5, 8, 16, 32, 48});
    if (rng_.Flip(0.2)) group = channels, out = channels;  // depthwise
    if (rng_.Flip(0.2) && channels % 4 == 0) group = 4, out = channels;
    Shape weight = {out, channels / group};
    Ints strides, dilations, pads(2 * spatial_);
    const int64_t kernel = Pick({1, 3, 3, 5});
    for (size_t d = 0; d < spatial_; ++d) {
      weight.push_back(kernel);
      dilations.push_back(shrink && kernel > 1 && rng_.Flip(0.2) ? 2 : 1);
      strides.push_back(shrink && rng_.Flip(0.2) ? 2 : 1);
      const int64_t reach = (kernel - 1) * dilations[d];
      pads[d] = reach / 2;
      pads[spatial_ + d] = reach - reach / 2;
      if (shrink && rng_.Flip(0.2)) ++pads[d];
    }
    std::vector<ValueId> inputs = {x, Weight(weight, 1.0 / static_cast<double>(kernel))};
    if (rng_.Flip()) inputs.push_back(Weight({out}, 1));
    return Add("Conv", inputs,
               {{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", group}});
  }

  ValueId MatMul(ValueId x) {
    const int64_t out = Pick({7, 16, 64});
    return Add("MatMul", {x, Weight({builder_.type(x).shape.back(), out}, 0.3)});
  }

  ValueId Branches(ValueId x) {
    std::vector<ValueId> parts;
    for (int64_t k = rng_.Between(2, 3); k > 0; --k) parts.push_back(PostOps(Conv(x, false)));
    if (rng_.Flip(0.3)) parts.push_back(x);
    const ValueId whole = Add("Concat", parts, {{"axis", int64_t{1}}});
    if (rng_.Flip(0.3)) {
      parts.push_back(PostOps(Conv(whole, false)));
      return Add("Concat", parts, {{"axis", int64_t{1}}});
    }
    return whole;
  }

  ValueId PerChannel(ValueId x, double scale) {
    const Shape& shape = builder_.type(x).shape;
    Shape constant(shape.size() - 1, 1);
    if (spatial_ == 0) {
      constant.back() = shape.back();
    } else {
      constant[0] = shape[1];
    }
    return rng_.Flip(0.3) ? builder_.Constant(Tensor::Scalar(DType::kF32, rng_.Uniform(0.5, 1.5)))
                          : Weight(constant, scale);
  }

  ValueId Normalize(ValueId x) {
    const int64_t channels = builder_.type(x).shape[1];
    std::vector<double> variance(static_cast<size_t>(channels), 0.7);
    const ValueId spread = builder_.Constant(
        Tensor::FromDoubles({DType::kF32, {channels}}, variance), Cat("w", weights_++));
    return Add("BatchNormalization",
               {x, Weight({channels}, 1), Weight({channels}, 1), Weight({channels}, 1), spread});
  }

  ValueId Number(double number) { return builder_.Constant(Tensor::Scalar(DType::kF32, number)); }

  /// Builds a Gelu in one of the forms that exporters write.
  ValueId DecomposedGelu(ValueId x) {
    ValueId bent;
    if (rng_.Flip()) {
      bent = Add("Erf", {rng_.Flip() ? Add("Div", {x, Number(std::sqrt(2.0))})
                                     : Add("Mul", {Number(std::sqrt(0.5)), x})});
    } else {
      const ValueId cube =
          rng_.Flip() ? Add("Pow", {x, Number(3)}) : Add("Mul", {x, Add("Mul", {x, x})});
      bent = Add("Tanh", {Add("Mul", {Add("Add", {x, Add("Mul", {cube, Number(0.044715)})}),
                                      Number(std::sqrt(2 / M_PI))})});
    }
    const ValueId gate = Add("Add", {bent, Number(1)});
    switch (rng_.Below(3)) {
      case 0:
        return Add("Mul", {Add("Mul", {x, gate}), Number(0.5)});
      case 1:
        return Add("Mul", {Add("Mul", {x, Number(0.5)}), gate});
      default:
        return Add("Mul", {x, Add("Div", {gate, Number(2)})});
    }
  }

  /// Builds a HardSwish in one of the forms that exporters write.
  ValueId DecomposedHardSwish(ValueId x) {
    if (rng_.Below(4) == 0)
      return Add("Mul", {Add("HardSigmoid", {x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}), x});
    const ValueId gate = Add("Clip", {Add("Add", {x, Number(3)})}, {{"min", 0.0}, {"max", 6.0}});
    switch (rng_.Below(3)) {
      case 0:
        return Add("Div", {Add("Mul", {x, gate}), Number(6)});
      case 1:
        return Add("Mul", {Add("Div", {gate, Number(6)}), x});
      default:
        return Add("Mul", {Add("Mul", {gate, x}), Number(1.0 / 6)});
    }
  }

  ValueId PostOp(ValueId x) {
    switch (rng_.Below(14)) {
      case 0:
        return Add("Relu", {x});
      case 1:
        return Add("Clip", {x}, {{"min", 0.0}, {"max", rng_.Below(4) == 0 ? -1.0 : 6.0}});
      case 2:
        return Add("Mul", {Add("Sigmoid", {x}), x});
      case 3:
        return rng_.Flip() ? Add("Gelu", {x}) : DecomposedGelu(x);
      case 4:
        return Add("Tanh", {x});
      case 5:
        return Add("Add", {PerChannel(x, 1), x});
      case 6:
        return Add("Mul", {x, PerChannel(x, 1)});
      case 7:
        return Add("Sub", {x, PerChannel(x, 1)});
      case 8:
        return spatial_ == 0 ? x : Normalize(x);
      case 9:
        return Add("LeakyRelu", {x}, {{"alpha", 0.1}});
      case 10:
        return rng_.Flip() ? Add("HardSwish", {x}) : DecomposedHardSwish(x);
      case 11:
        kept_.push_back(x);
        return x;
      default:
        return Residual(x);
    }
  }

  /// Adds an earlier value of the same type, or another layer on the side.
  ValueId Residual(ValueId x) {
    for (ValueId earlier : seen_) {
      if (earlier != x && builder_.type(earlier) == builder_.type(x) && rng_.Flip(0.7))
        return Add("Add", {x, earlier});
    }
    return rng_.Flip() ? Add("Add", {Add("Tanh", {x}), x}) : Add("Add", {x, x});
  }

  ValueId PostOps(ValueId x) {
    for (int64_t k = rng_.Between(0, 5); k > 0; --k) {
      seen_.push_back(x);
      x = PostOp(x);
    }
    seen_.push_back(x);
    return x;
  }

  ValueId Pool(ValueId x) {
    const Shape& shape = builder_.type(x).shape;
    Ints kernel, strides, dilations(spatial_, 1), pads(2 * spatial_, 0);
    for (size_t d = 0; d < spatial_; ++d) {
      kernel.push_back(std::min<int64_t>(shape[d + 2], 3));
      strides.push_back(rng_.Between(1, 2));
      if (kernel[d] > 1 && rng_.Flip()) pads[d] = 1;
    }
    const char* op = rng_.Flip() ? "MaxPool" : "AveragePool";
    return Add(
        op, {x},
        {{"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}});
  }

  ValueId Mean(ValueId x) {
    Ints axes;
    for (size_t d = 2; d < builder_.type(x).shape.size(); ++d)
      axes.push_back(static_cast<int64_t>(d));
    return Add("ReduceMean", {x}, {{"axes", axes}, {"keepdims", rng_.Between(0, 1)}});
  }

  Rng& rng_;
  GraphBuilder builder_;
  size_t spatial_ = 0;
  int weights_ = 0;
  std::vector<ValueId> seen_;
  std::vector<ValueId> kept_;
};

/// Largest value of any node: the roundings to bf16 inside a network are relative to it.
double LargestValue(const Graph& graph, const std::vector<HostValue>& inputs) {
  std::vector<std::vector<HostValue>> values(graph.nodes().size());
  double largest = 0;
  size_t next = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (IsInput(node)) {
      values[i] = {inputs[next++]};
    } else if (IsConstant(node)) {
      values[i] = {HostValue::FromTensor(ConstantValue(node))};
    } else {
      std::vector<const HostValue*> operands;
      for (ValueId input : node.inputs) {
        operands.push_back(
            &values[static_cast<size_t>(input.node)][static_cast<size_t>(input.output)]);
      }
      values[i] = WithView(graph, static_cast<int32_t>(i), [&](const NodeView& view) {
        return EvaluateNode(*node.op, view, operands);
      });
    }
    for (const HostValue& value : values[i]) {
      for (double scalar : value.scalars) largest = std::max(largest, std::fabs(scalar));
    }
  }
  return largest;
}

TEST(CpuFusion, RandomNetworksUnderEveryAlgorithm) {
  std::map<std::string, int> kernels;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Rng rng(seed);
    const Graph graph = NetworkBuilder(rng).Build();
    std::vector<Tensor> weights;
    PrintOptions brief;
    brief.tensors = &weights;
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << PrintGraph(graph, brief));
    const std::vector<HostValue> inputs = RandomInputs(rng, graph);
    std::set<std::string> algorithms = {""};
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      for (std::string& name :
           FindBackend("cpu")->Algorithms(graph, static_cast<int32_t>(i), Numerics::kBf16)) {
        algorithms.insert(std::move(name));
      }
    }
    for (const std::string& algorithm : algorithms) {
      SCOPED_TRACE("algorithm " + algorithm);
      CompileOptions options;
      options.numerics = Numerics::kBf16;
      options.threads = seed % 3 == 0 ? 2 : 1;
      for (size_t i = 0; !algorithm.empty() && i < graph.nodes().size(); ++i) {
        const int32_t id = static_cast<int32_t>(i);
        for (const std::string& name : FindBackend("cpu")->Algorithms(graph, id, Numerics::kBf16)) {
          if (name == algorithm) options.algorithms[id] = name;
        }
      }
      const double f32 = algorithm.find("winograd") == 0 ? 1e-4 : 2e-5;
      const double rounding = algorithm == kBf16Algorithm     ? 0x1p-8
                              : algorithm == kBf16x3Algorithm ? 3 * 0x1p-16
                                                              : 0;
      const double scale = rounding > 0 ? LargestValue(graph, inputs) : 0;
      const double tolerance = rounding > 0 ? 8 * rounding : f32;
      for (const std::string& kernel : ExpectMatches(graph, inputs, options, tolerance, scale))
        ++kernels[kernel];
      if (testing::Test::HasFailure()) return;
    }
  }
  for (const auto& [name, count] : kernels) std::cout << count << " x " << name << "\n";
}

/// Every node that can be a pointwise product is one. Its step also computes the operations before
/// and after.
void ExpectPointwise(const Graph& graph, Rng& rng) {
  CompileOptions options;
  options.threads = static_cast<int>(rng.Between(1, 2));
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    for (const std::string& name : FindBackend("cpu")->Algorithms(graph, id, Numerics::kStrict)) {
      if (name == "pointwise-own") options.algorithms[id] = name;
    }
  }
  if (options.algorithms.empty()) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
  int products = 0;
  for (const std::string& kernel : ExpectMatches(graph, RandomInputs(rng, graph), options, 2e-5)) {
    EXPECT_EQ(kernel.find("tile"), std::string::npos) << kernel;
    products += kernel.find("pointwise-own") == 0;
  }
  EXPECT_EQ(products, 1);
}

TEST(CpuFusion, PointwiseProductsComputeTheirSource) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    GraphBuilder builder;
    const auto constant = [&](Shape shape, double least, const std::string& name) {
      std::vector<double> values(static_cast<size_t>(NumElements(shape)));
      for (double& value : values) value = rng.Uniform(least, 1);
      return builder.Constant(Tensor::FromDoubles({DType::kF32, std::move(shape)}, values), name);
    };
    const int64_t channels = rng.Flip() ? 20 : 80;
    const bool normalized = rng.Flip(), transposed = rng.Flip(0.3);
    ValueId x = builder.Input(
        "x", {DType::kF32, {rng.Between(1, 2), channels, rng.Between(1, 9), rng.Between(1, 9)}});
    if (normalized && !transposed) {
      x = *builder.Add("BatchNormalization",
                       {x, constant({channels}, -1, "s"), constant({channels}, -1, "b"),
                        constant({channels}, -1, "m"), constant({channels}, 0.5, "v")});
    }
    if ((!normalized || rng.Flip()) && !transposed) x = *builder.Add("Relu", {x});
    const int64_t size = transposed ? 2 : 1;
    const Shape shape =
        transposed ? Shape{channels, 33, size, size} : Shape{33, channels, size, size};
    Attributes attrs = {
        {"strides", Ints{size, size}}, {"dilations", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}};
    if (transposed) attrs.Set("output_padding", Ints{0, 0});
    x = *builder.Add(transposed ? "ConvTranspose" : "Conv",
                     {x, constant(shape, -1, "w"), constant({33}, -1, "c")}, attrs);
    builder.Output("y", *builder.Add("Relu", {x}));
    ExpectPointwise(*builder.Build(), rng);
    if (testing::Test::HasFailure() || testing::Test::IsSkipped()) return;
  }
}

/// A product with bias, residual and activation, of whole numbers so small that every sum is exact
/// in f32.
Graph WholeNumbers(Rng& rng) {
  GraphBuilder builder;
  const auto constant = [&](Shape shape, const std::string& name) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = static_cast<double>(rng.Between(-4, 4));
    return builder.Constant(Tensor::FromDoubles({DType::kF32, std::move(shape)}, values), name);
  };
  const int64_t in = rng.Between(512, 700), out = rng.Between(192, 300);
  const int64_t rows = rng.Between(5, 9), columns = rng.Between(8, 30);
  const ValueId x = builder.Input("x", {DType::kF32, {rows, columns, in}});
  ValueId y = *builder.Add(
      "Add", {*builder.Add("MatMul", {x, constant({in, out}, "w")}), constant({out}, "b")});
  if (rng.Flip()) y = *builder.Add("Add", {y, builder.Input("r", builder.type(y))});
  if (rng.Flip()) y = *builder.Add("Relu", {y});
  builder.Output("y", y);
  return *builder.Build();
}

TEST(CpuFusion, StrassensProductsAreExactOnSmallWholeNumbers) {
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Graph graph = WholeNumbers(rng);
    CompileOptions options;
    options.threads = static_cast<int>(rng.Between(1, 3));
    for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
      for (const std::string& name :
           FindBackend("cpu")->Algorithms(graph, id, Numerics::kDefault)) {
        if (name == "strassen-own") options.algorithms[id] = name;
      }
      for (const std::string& name : FindBackend("cpu")->Algorithms(graph, id, Numerics::kStrict))
        EXPECT_NE(name, "strassen-own");
    }
    if (options.algorithms.empty()) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
    std::vector<HostValue> inputs = RandomInputs(rng, graph);
    for (HostValue& input : inputs) {
      for (double& value : input.scalars) value = static_cast<double>(rng.Between(-4, 4));
    }
    int products = 0;
    for (const std::string& kernel : ExpectMatches(graph, inputs, options, 0))
      products += kernel.find("strassen-own") == 0;
    EXPECT_EQ(products, 1);
    options.numerics = Numerics::kStrict;
    EXPECT_EQ(FindBackend("cpu")->Compile(graph, options).status().code(),
              absl::StatusCode::kInvalidArgument);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(CpuFusion, UnknownAlgorithmIsRefusedByName) {
  Rng rng(3);
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {1, 16, 8, 8}});
  const ValueId w = builder.Constant(Tensor::Filled({DType::kF32, {16, 16, 3, 3}}, 0.1), "w");
  const Attributes attrs = {
      {"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}};
  const ValueId y = *builder.Add("Conv", {x, w}, attrs, "layer");
  builder.Output("y", y);
  const Graph graph = *builder.Build();
  CompileOptions options;
  options.algorithms[y.node] = "winograd:9x9";
  const auto executable = FindBackend("cpu")->Compile(graph, options);
  EXPECT_EQ(executable.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(executable.status().message().find("layer"), absl::string_view::npos);
}

}  // namespace
}  // namespace mendel::cpu
