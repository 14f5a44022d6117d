#include "kernels/cpu/testing/low_precision_case.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/status.h"
#include "gtest/gtest.h"

namespace mendel::cpu {
namespace {

HostValue Absolute(HostValue value) {
  for (double& scalar : value.scalars) scalar = std::fabs(scalar);
  return value;
}

/// Evaluates the layer without its ReLU by the operator's definition. `bound` takes the absolute
/// weights and no bias.
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

/// Largest number of products in a sum.
int64_t Depth(const Layer& layer) {
  const Shape& shape = layer.weights[0].type.shape;
  if (layer.op->name == "MatMul") return shape[shape.size() - 2];
  return NumElements(shape) / shape[layer.op->name == "Conv" ? 0 : 1];
}

/// Returns the chain's value by its definition and the error bound of each element. An operand is
/// wrong by the error of the layer before and its own rounding, a product by that and the weight's
/// rounding. Sums add the absolute errors.
struct Bounded {
  HostValue exact, error;
};
Bounded Bound(const Precision& precision, const std::vector<Layer>& layers, const HostValue& x) {
  Bounded bounded{x, x};
  std::fill(bounded.error.scalars.begin(), bounded.error.scalars.end(), 0.0);
  for (const Layer& layer : layers) {
    HostValue& exact = bounded.exact;
    HostValue& error = bounded.error;
    const double relative =
        precision.product + 0x1p-23 * static_cast<double>(precision.parts * Depth(layer));
    for (size_t i = 0; i < error.scalars.size(); ++i) {
      error.scalars[i] = relative * std::fabs(exact.scalars[i]) + (1 + relative) * error.scalars[i];
    }
    error = Linear(layer, error, true);
    exact = Linear(layer, exact, false);
    for (size_t i = 0; i < exact.scalars.size(); ++i) {
      error.scalars[i] += 0x1p-22 * std::fabs(exact.scalars[i]) +
                          0x1p-100;  // bias and store; denormals may be zero
      if (layer.relu) exact.scalars[i] = std::max(exact.scalars[i], 0.0);
    }
  }
  return bounded;
}

}  // namespace

CompileOptions In(const Precision& precision, const Graph& graph, int threads) {
  CompileOptions options;
  options.threads = threads;
  options.numerics = precision.numerics;
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    if (RunsLowPrecision(graph, id, precision.numerics, precision.algorithm))
      options.algorithms[id] = precision.algorithm;
  }
  return options;
}

Graph Chain(const std::vector<Layer>& layers, const TensorType& type, bool kept) {
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

std::string Description(const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps) text += Cat(step.name, " [", step.kernel, "]; ");
  return text;
}

double ExpectWithinBound(const Precision& precision, const std::vector<Layer>& layers,
                         const HostValue& x, int threads) {
  const Graph graph = Chain(layers, x.type);
  const auto executable = FindBackend("cpu")->Compile(graph, In(precision, graph, threads));
  EXPECT_TRUE(executable.ok()) << executable.status();
  SCOPED_TRACE(Description((*executable)->steps()));
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

std::vector<Layer> LayersBuilder::Build(int count, HostValue& x) {
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
  for (; count > 0; --count)
    layers.push_back(rng_.Flip(0.2) && shape[2] < 10 ? Transposed(shape) : Convolution(shape));
  return layers;
}

int64_t LayersBuilder::Channels() {
  constexpr int64_t kChoices[] = {3, 8, 16, 20, 32, 48};
  return kChoices[rng_.Below(std::size(kChoices))];
}

HostValue LayersBuilder::Value(const Shape& shape) {
  HostValue value{{DType::kF32, shape}, {}, {}};
  for (int64_t i = NumElements(shape); i > 0; --i) {
    // Mostly zeros: sums of whole numbers stay below 256.
    const double number = static_cast<double>(rng_.Flip(0.1) ? rng_.Between(-2, 2) : 0);
    value.scalars.push_back(whole_ ? number
                                   : static_cast<double>(static_cast<float>(rng_.Normal())));
  }
  return value;
}

Layer LayersBuilder::Finish(std::string_view op, Attributes attrs, const Shape& weights,
                            int64_t channels) {
  Layer layer{FindOp(op), std::move(attrs), {Value(weights)}, rng_.Flip()};
  if (op != "MatMul" && rng_.Flip()) layer.weights.push_back(Value({channels}));
  return layer;
}

Layer LayersBuilder::Product(Shape& shape) {
  const Shape weights = {shape.back(), rng_.Between(1, 70)};
  shape.back() = weights[1];
  return Finish("MatMul", {}, weights, 0);
}

Layer LayersBuilder::Convolution(Shape& shape) {
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
  return Finish("Conv",
                {{"strides", strides}, {"dilations", dilations}, {"pads", begin}, {"group", group}},
                weights, out);
}

Layer LayersBuilder::Transposed(Shape& shape) {
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

}  // namespace mendel::cpu
