#include "bench/growth_graphs.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/status.h"
#include "graph/emitter.h"

namespace mendel {
namespace {

constexpr int64_t kTokens = 32, kDepth = 32;  // of an attention head

ValueId Weight(Emitter& e, Rng& rng, const Shape& shape, const std::string& name) {
  double fan_in = 1;
  for (size_t d = shape.size() == 4 ? 1 : 0; d < shape.size() - (shape.size() == 2 ? 1 : 0); ++d)
    fan_in *= static_cast<double>(shape[d]);
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (double& value : values) value = rng.Normal() / std::sqrt(fan_in);
  return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), name);
}

ValueId Conv(Emitter& e, Rng& rng, ValueId x, int64_t channels, int64_t dilation,
             const std::string& name) {
  const ValueId w = Weight(e, rng, {channels, e.shape(x)[1], 3, 3}, name);
  return e.Op("Conv", {x, w},
              {{"strides", Ints{1, 1}},
               {"dilations", Ints{dilation, dilation}},
               {"pads", Ints(4, dilation)}});
}

Graph Blocks(int blocks, bool different) {
  constexpr int64_t kChannels = 16, kSpace = 20;
  Emitter e(Cat(different ? "different" : "repeated", blocks));
  Rng rng(7);
  ValueId x = e.Input("x", {DType::kF32, {1, kChannels, kSpace, kSpace}});
  for (int block = 0; block < blocks; ++block) {
    const int64_t inside = different ? kChannels + block : kChannels;
    const ValueId h = e.Op("Relu", {Conv(e, rng, x, inside, 2, Cat("w", block, "a"))});
    x = e.Op("Relu", {e.Add(x, Conv(e, rng, h, kChannels, 1, Cat("w", block, "b")))});
  }
  e.Output("y", x);
  auto graph = e.Finish();
  MENDEL_CHECK(graph.ok());
  return *std::move(graph);
}

ValueId Linear(Emitter& e, Rng& rng, ValueId x, int64_t width, const std::string& name) {
  const ValueId bias = Weight(e, rng, {width}, name + "b");
  return e.Add(e.MatMul(x, Weight(e, rng, {e.shape(x).back(), width}, name + "w")), bias);
}

ValueId Normalized(Emitter& e, Rng& rng, ValueId x, const std::string& name) {
  const int64_t width = e.shape(x).back();
  return e.Op("LayerNormalization",
              {x, Weight(e, rng, {width}, name + "s"), Weight(e, rng, {width}, name + "b")},
              {{"axis", int64_t{2}}});
}

ValueId Layer(Emitter& e, Rng& rng, ValueId x, const std::string& name) {
  const int64_t width = e.shape(x).back(), heads = width / kDepth;
  const auto split = [&](const std::string& part, Ints perm) {
    return e.Transpose(
        e.Reshape(Linear(e, rng, x, width, name + part), {1, kTokens, heads, kDepth}),
        std::move(perm));
  };
  const ValueId keys = split("k", {0, 2, 3, 1});
  const ValueId scores = e.MatMul(split("q", {0, 2, 1, 3}), keys);
  const ValueId scale =
      e.Constant(Tensor::Scalar(DType::kF32, 1 / std::sqrt(static_cast<double>(kDepth))));
  const ValueId weights = e.Op("Softmax", {e.Mul(scores, scale)}, {{"axis", int64_t{3}}});
  const ValueId mixed = e.Transpose(e.MatMul(weights, split("v", {0, 2, 1, 3})), {0, 2, 1, 3});
  const ValueId attended = Linear(e, rng, e.Reshape(mixed, {1, kTokens, width}), width, name + "o");
  const ValueId y = Normalized(e, rng, e.Add(x, attended), name + "n1");
  const ValueId wide = e.Op("Gelu", {Linear(e, rng, y, 4 * width, name + "f1")});
  return Normalized(e, rng, e.Add(y, Linear(e, rng, wide, width, name + "f2")), name + "n2");
}

}  // namespace

Graph RepeatedBlocks(int blocks) { return Blocks(blocks, false); }
Graph DifferentBlocks(int blocks) { return Blocks(blocks, true); }

Graph BertLike(int layers, int64_t width) {
  Emitter e(Cat("bert", layers));
  Rng rng(8);
  ValueId x = e.Input("x", {DType::kF32, {1, kTokens, width}});
  for (int layer = 0; layer < layers; ++layer) x = Layer(e, rng, x, Cat("l", layer));
  e.Output("y", x);
  auto graph = e.Finish();
  MENDEL_CHECK(graph.ok());
  return *std::move(graph);
}

}  // namespace mendel
