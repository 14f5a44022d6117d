#include "bench/kernel_cases.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "bench/conv_layers.h"
#include "graph/emitter.h"
#include "graph/tensor.h"

namespace mendel {
namespace {

/// A convolution of `same` padding with a bias.
struct ConvCase {
  std::string_view networks;
  int64_t channels_in;
  Ints extents;
  int64_t channels_out;
  Ints taps;
  std::string_view activation = "Relu";  ///< an operator, "Swish", or "" for none
  int64_t groups = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t batch = 1;
};

/// Convolutions that native kernels support: stride 1 and one group for Winograd, taps of one for
/// products, groups for the rest.
const ConvCase kConvs[] = {
    {"vgg16", 128, {112, 112}, 128, {3, 3}},
    {"unet", 64, {128, 128}, 64, {3, 3}},
    {"resnet18", 64, {56, 56}, 64, {3, 3}},
    {"resnet18", 128, {28, 28}, 128, {3, 3}},
    {"resnet18", 256, {14, 14}, 256, {3, 3}},
    {"resnet18", 256, {14, 14}, 256, {3, 3}, "Relu", 1, 1, 1, 8},
    {"resnet18", 512, {7, 7}, 512, {3, 3}},
    {"resnet18", 512, {7, 7}, 512, {3, 3}, "Relu", 1, 1, 1, 8},
    {"vgg16", 512, {14, 14}, 512, {3, 3}},
    {"squeezenet1_1", 48, {13, 13}, 192, {3, 3}},
    {"densenet121", 128, {28, 28}, 32, {3, 3}},
    {"ssd300", 256, {10, 10}, 256, {3, 3}},
    {"ssd300", 128, {5, 5}, 256, {3, 3}},
    {"yolov5s", 64, {40, 40}, 64, {3, 3}, "Swish"},
    {"csrnet", 512, {28, 28}, 512, {3, 3}, "Relu", 1, 1, 2},
    {"deeplabv3", 256, {28, 28}, 256, {3, 3}, "Relu", 1, 1, 4},
    {"inception_v3", 48, {35, 35}, 64, {5, 5}},
    {"alexnet", 64, {27, 27}, 192, {5, 5}},
    {"espcn", 64, {64, 64}, 32, {5, 5}},
    {"googlenet", 24, {14, 14}, 64, {5, 5}},
    {"inception_v3", 160, {17, 17}, 160, {1, 7}},
    {"inception_v3", 192, {17, 17}, 192, {7, 1}},
    {"inception_v3", 384, {8, 8}, 384, {1, 3}},
    {"inception_v3", 384, {8, 8}, 384, {3, 1}},
    {"enet", 32, {64, 64}, 32, {5, 1}},
    {"text recognition", 64, {32, 100}, 64, {3, 5}},
    {"text recognition", 64, {100, 32}, 64, {5, 3}},
    {"wav2vec2", 512, {400}, 512, {3}, "Gelu"},
    {"tacotron2", 512, {160}, 512, {5}, "Tanh"},
    {"fastspeech2", 256, {200}, 256, {7}},
    {"r3d_18", 64, {8, 28, 28}, 64, {3, 3, 3}},
    {"r3d_18", 128, {4, 14, 14}, 128, {3, 3, 3}},
    {"r3d_18", 256, {2, 7, 7}, 256, {3, 3, 3}},
    {"unet3d", 32, {24, 24, 24}, 32, {3, 3, 3}},
    {"r2plus1d_18", 64, {8, 28, 28}, 144, {1, 3, 3}},
    {"r2plus1d_18", 144, {8, 28, 28}, 64, {3, 1, 1}},
    {"squeezenet1_1", 16, {55, 55}, 64, {1, 1}},
    {"squeezenet1_1", 128, {55, 55}, 16, {1, 1}},
    {"resnet50", 256, {56, 56}, 64, {1, 1}},
    {"resnet50", 256, {14, 14}, 1024, {1, 1}},
    {"resnet50", 1024, {14, 14}, 256, {1, 1}},
    {"resnet50", 2048, {7, 7}, 512, {1, 1}},
    {"resnet50", 1024, {14, 14}, 256, {1, 1}, "Relu", 1, 1, 1, 8},
    {"inception_v3", 768, {17, 17}, 192, {1, 1}},
    {"mobilenet_v2", 16, {112, 112}, 96, {1, 1}, "Clip"},
    {"mobilenet_v2", 96, {14, 14}, 576, {1, 1}, "Clip"},
    {"efficientnet_b0", 80, {14, 14}, 480, {1, 1}, "Swish"},
    {"shufflenet", 240, {28, 28}, 240, {1, 1}, "Relu", 3},
    {"resnext50", 128, {56, 56}, 128, {3, 3}, "Relu", 32},
    {"resnext50", 256, {28, 28}, 256, {3, 3}, "Relu", 32},
    {"resnext50", 512, {14, 14}, 512, {3, 3}, "Relu", 32},
    {"resnext50", 1024, {7, 7}, 1024, {3, 3}, "Relu", 32},
    {"regnet_x", 168, {28, 28}, 168, {3, 3}, "Relu", 7},
    {"mobilenet_v2", 96, {112, 112}, 96, {3, 3}, "Clip", 96, 2},
    {"mobilenet_v2", 144, {56, 56}, 144, {3, 3}, "Clip", 144},
    {"mobilenet_v2", 384, {14, 14}, 384, {3, 3}, "Clip", 384},
    {"mobilenet_v2", 960, {7, 7}, 960, {3, 3}, "Clip", 960},
    {"efficientnet_b0", 240, {28, 28}, 240, {5, 5}, "Swish", 240},
    {"efficientnet_b0", 672, {14, 14}, 672, {5, 5}, "Swish", 672},
    {"mobilenet_v3", 240, {14, 14}, 240, {3, 3}, "HardSwish", 240},
    {"convnext_tiny", 96, {56, 56}, 96, {7, 7}, "", 96},
    {"quartznet", 256, {200}, 256, {33}, "", 256},
};

/// A pointwise convolution to `expanded` channels and the depthwise one after it.
struct ExpandCase {
  std::string_view network;
  int64_t channels;
  int64_t extent;
  int64_t expanded;
  int64_t taps;
  std::string_view activation;
  int64_t stride = 1;
};
const ExpandCase kExpands[] = {
    {"mobilenet_v2", 16, 112, 96, 3, "Clip", 2},  {"mobilenet_v2", 24, 56, 144, 3, "Clip"},
    {"mobilenet_v2", 64, 14, 384, 3, "Clip"},     {"mobilenet_v2", 160, 7, 960, 3, "Clip"},
    {"efficientnet_b0", 40, 28, 240, 5, "Swish"}, {"efficientnet_b0", 112, 14, 672, 5, "Swish"},
};

/// Rows times stored weights.
struct ProductCase {
  std::string_view network;
  int64_t rows, depth, columns;
};
const ProductCase kProducts[] = {
    {"bert", 128, 768, 768},           {"bert", 128, 768, 3072},
    {"bert", 128, 3072, 768},          {"vit_b_16", 197, 768, 2304},
    {"gpt2, one token", 1, 768, 3072}, {"nasrnn", 1, 512, 512},
    {"vgg16", 1, 4096, 1000},          {"dlrm", 64, 512, 256},
};

struct AttentionCase {
  std::string_view network;
  int64_t heads, queries, keys, depth;
};
const AttentionCase kAttentions[] = {
    {"bert", 12, 128, 128, 64},
    {"vit_b_16", 12, 197, 197, 64},
    {"gpt2", 12, 512, 512, 64},
    {"gpt2, one token", 12, 1, 512, 64},
    {"swin_t, 64 windows", 192, 49, 49, 32},
};

/// Operators that use a native kernel by default.
struct OperatorCase {
  std::string_view network, op;
  std::vector<Shape> inputs;
  Attributes attrs;
  std::string_view description = "";  ///< description of the attributes
};

Attributes Resized(Shape from, double scale, std::string_view mode) {
  for (size_t d = 2; d < from.size(); ++d)
    from[d] = static_cast<int64_t>(scale * static_cast<double>(from[d]));
  return {{"output_sizes", Ints(from)},
          {"scales", std::vector<double>{1, 1, scale, scale}},
          {"mode", std::string(mode)}};
}

std::vector<OperatorCase> OperatorCases() {
  return {
      {"unet", "Resize", {{1, 64, 64, 64}}, Resized({1, 64, 64, 64}, 2, "linear"), " linear by 2"},
      {"deeplabv3",
       "Resize",
       {{1, 21, 28, 28}},
       Resized({1, 21, 28, 28}, 8, "linear"),
       " linear by 8"},
      {"yolov5s",
       "Resize",
       {{1, 256, 20, 20}},
       Resized({1, 256, 20, 20}, 2, "nearest"),
       " nearest by 2"},
      {"fast style transfer", "InstanceNormalization", {{1, 64, 128, 128}, {64}, {64}}, {}},
      {"efficientnet_b0",
       "ReduceMean",
       {{1, 1280, 7, 7}},
       {{"axes", Ints{2, 3}}, {"keepdims", int64_t{1}}},
       " of positions"},
      {"convnext_tiny",
       "ReduceMean",
       {{1, 96, 56, 56}},
       {{"axes", Ints{1}}, {"keepdims", int64_t{1}}},
       " of channels"},
      {"pointnet",
       "ReduceMax",
       {{1, 1024, 32, 32}},
       {{"axes", Ints{2, 3}}, {"keepdims", int64_t{1}}},
       " of positions"},
      {"alexnet", "LRN", {{1, 96, 27, 27}}, {{"size", int64_t{5}}}},
      {"bert", "Gelu", {{1, 128, 1, 3072}}, {}},
      {"dcgan", "Tanh", {{1, 3, 64, 64}}, {}},
      {"yolov5s", "Sigmoid", {{1, 255, 40, 40}}, {}}};
}

/// Relu6 where the operator is Clip.
ValueId Activate(Emitter& e, ValueId x, std::string_view name) {
  if (name.empty()) return x;
  if (name == "Swish") return e.Mul(x, e.Op("Sigmoid", {x}));
  if (name == "Clip") return e.Op("Clip", {x}, {{"min", 0.0}, {"max", 6.0}});
  return e.Op(name, {x});
}

ValueId Convolve(Emitter& e, ValueId x, const ConvLayer& layer, std::string_view activation,
                 const std::string& symbol) {
  const ValueId bias = RandomWeights(e, {layer.w[0]}, Cat(symbol, " bias"));
  return Activate(e, e.Op("Conv", {x, RandomWeights(e, layer.w, symbol), bias}, layer.attrs),
                  activation);
}

ConvLayer LayerOf(const ConvCase& c) {
  ConvLayer layer;
  layer.x = {c.batch, c.channels_in};
  layer.x.insert(layer.x.end(), c.extents.begin(), c.extents.end());
  layer.w = {c.channels_out, c.channels_in / c.groups};
  layer.w.insert(layer.w.end(), c.taps.begin(), c.taps.end());
  Ints pads;
  for (const int64_t taps : c.taps) pads.push_back(c.dilation * (taps - 1) / 2);
  pads.insert(pads.end(), pads.begin(), pads.end());
  layer.attrs = {{"strides", Ints(c.taps.size(), c.stride)},
                 {"dilations", Ints(c.taps.size(), c.dilation)},
                 {"pads", std::move(pads)},
                 {"group", c.groups}};
  return layer;
}

std::string KindOf(const ConvCase& c) {
  std::string taps;
  for (const int64_t extent : c.taps) taps += Cat(taps.empty() ? "" : "x", extent);
  if (c.groups == 1) return taps;
  return c.groups == c.channels_in
             ? Cat("depthwise ", taps, c.activation.empty() ? "" : " ", c.activation)
             : Cat("grouped ", taps);
}

KernelCase Case(const ConvCase& c) {
  const ConvLayer layer = LayerOf(c);
  std::string text = Cat(c.networks, ": ", LayerText(layer));
  if (c.batch > 1) text += Cat(" batch ", c.batch);
  return {KindOf(c), std::move(text), [layer, activation = c.activation] {
            Emitter e("layer");
            e.Output("out0",
                     Convolve(e, e.Input("in0", {DType::kF32, layer.x}), layer, activation, "w"));
            return e.Finish();
          }};
}

KernelCase Case(const ExpandCase& c) {
  const ConvLayer wide = LayerOf({c.network, c.channels, {c.extent, c.extent}, c.expanded, {1, 1}});
  const ConvLayer deep = LayerOf({c.network,
                                  c.expanded,
                                  {c.extent, c.extent},
                                  c.expanded,
                                  {c.taps, c.taps},
                                  c.activation,
                                  c.expanded,
                                  c.stride});
  return {Cat("expanded depthwise ", c.taps, "x", c.taps, " ", c.activation),
          Cat(c.network, ": ", LayerText(wide), ", then ", LayerText(deep)),
          [wide, deep, activation = c.activation] {
            Emitter e("layer");
            const ValueId x =
                Convolve(e, e.Input("in0", {DType::kF32, wide.x}), wide, activation, "wide");
            e.Output("out0", Convolve(e, x, deep, activation, "deep"));
            return e.Finish();
          }};
}

KernelCase Case(const ProductCase& c) {
  return {"product", Cat(c.network, ": ", c.rows, "x", c.depth, " times ", c.depth, "x", c.columns),
          [c] {
            Emitter e("layer");
            const ValueId x = e.Input("in0", {DType::kF32, {c.rows, c.depth}});
            e.Output("out0", e.Add(e.MatMul(x, RandomWeights(e, {c.depth, c.columns}, "w")),
                                   RandomWeights(e, {c.columns}, "b")));
            return e.Finish();
          }};
}

KernelCase Case(const AttentionCase& c) {
  return {"attention",
          Cat(c.network, ": ", c.heads, " heads, ", c.queries, " queries, ", c.keys, " keys of ",
              c.depth),
          [c] {
            Emitter e("layer");
            const ValueId q = e.Input("in0", {DType::kF32, {1, c.heads, c.queries, c.depth}});
            const ValueId k = e.Input("in1", {DType::kF32, {1, c.heads, c.keys, c.depth}});
            const ValueId v = e.Input("in2", {DType::kF32, {1, c.heads, c.keys, c.depth}});
            const ValueId scale = e.Constant(
                Tensor::Scalar(DType::kF32, 1 / std::sqrt(static_cast<double>(c.depth))), "scale");
            const ValueId scores = e.Mul(e.MatMul(q, e.Transpose(k, {0, 1, 3, 2})), scale);
            e.Output("out0", e.MatMul(e.Op("Softmax", {scores}, {{"axis", int64_t{3}}}), v));
            return e.Finish();
          }};
}

KernelCase Case(const OperatorCase& c) {
  std::string shape;
  for (const int64_t extent : c.inputs[0]) shape += Cat(shape.empty() ? "" : "x", extent);
  return {std::string(c.op), Cat(c.network, ": ", shape, c.description), [c] {
            Emitter e("layer");
            std::vector<ValueId> inputs;
            for (const Shape& own : c.inputs)
              inputs.push_back(e.Input(Cat("in", inputs.size()), {DType::kF32, own}));
            e.Output("out0", e.Op(c.op, inputs, c.attrs));
            return e.Finish();
          }};
}

template <class Table>
void Append(const Table& table, std::vector<KernelCase>& cases) {
  for (const auto& entry : table) cases.push_back(Case(entry));
}

}  // namespace

std::vector<KernelCase> KernelCases() {
  std::vector<KernelCase> cases;
  Append(kConvs, cases);
  Append(kExpands, cases);
  Append(kProducts, cases);
  Append(kAttentions, cases);
  Append(OperatorCases(), cases);
  return cases;
}

}  // namespace mendel
