#include "kernels/cuda/testing/convolution_case.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "base/status.h"
#include "graph/text.h"

namespace mendel::cuda {
namespace {

/// Multiples of 1/4 between -2 and 2; `fine`: with 20 bits more.
Tensor Small(Rng& rng, TensorType type, bool fine) {
  constexpr int64_t kFine = int64_t{1} << 20;
  const int64_t steps = fine ? kFine : 1;
  std::vector<double> values;
  for (int64_t k = 0; k < NumElements(type); ++k) {
    values.push_back(static_cast<double>(rng.Between(-8 * steps, 8 * steps)) /
                     static_cast<double>(4 * steps));
  }
  return Tensor::FromDoubles(std::move(type), values);
}

struct Layer {
  const char* network;
  int64_t in, out;
  Ints extents;
  int64_t kernel, stride = 1, dilation = 1, group = 1;
  bool transposed = false;
};

const std::vector<Layer>& Layers() {
  static const auto* layers = new std::vector<Layer>{
      {"ResNet, stem", 3, 64, {112, 112}, 7, 2},
      {"ResNet, first 1x1", 64, 64, {56, 56}, 1},
      {"ResNet, 1x1 with a stride", 256, 512, {28, 28}, 1, 2},
      {"ResNet, 3x3", 128, 128, {14, 14}, 3},
      {"ResNet, last 3x3", 256, 256, {7, 7}, 3},
      {"ResNeXt, groups", 128, 128, {28, 28}, 3, 1, 1, 32},
      {"MobileNet, depthwise with a stride", 96, 96, {112, 112}, 3, 2, 1, 96},
      {"MobileNet, expansion", 24, 144, {56, 56}, 1},
      {"EfficientNet, depthwise 5x5", 672, 672, {14, 14}, 5, 2, 1, 672},
      {"CSRNet, dilated", 512, 64, {14, 14}, 3, 1, 2},
      {"YOLO, 3x3 with a stride", 32, 64, {80, 80}, 3, 2},
      {"U-Net, transposed", 256, 128, {14, 14}, 2, 2, 1, 1, true},
      {"DCGAN, transposed", 128, 64, {8, 8}, 4, 2, 1, 1, true},
      {"wav2vec, 1-D", 64, 64, {400}, 3, 2},
      {"C3D, 3-D", 16, 32, {8, 14, 14}, 3}};
  return *layers;
}

class NetMaker {
 public:
  NetMaker(uint64_t seed, Numerics numerics) : rng_(seed), rounds_(OperandRounding(numerics) > 0) {
    const double dtype = rng_.Unit();
    dtype_ = dtype < 0.6 ? DType::kF32 : (dtype < 0.8 ? DType::kF16 : DType::kBF16);
  }

  Graph Make() {
    Shape shape = {rng_.Between(1, 2), 2 * rng_.Between(1, 3)};
    for (int64_t d = rng_.Between(1, 3); d > 0; --d) shape.push_back(rng_.Between(4, 7));
    ValueId value = Given(shape);
    if (rng_.Flip(0.3)) value = Add("Neg", {value});
    for (int64_t k = rng_.Between(1, 2); k > 0; --k) {
      value = Convolution(value);
      for (int64_t more = rng_.Between(0, 4); more > 0; --more) value = Follower(value);
    }
    builder_.Output("y", value);
    return *builder_.Build();
  }
  std::vector<HostValue> TakeInputs() { return std::move(inputs_); }

  Graph Make(const Layer& layer) {
    Shape shape = {1, layer.in};
    shape.insert(shape.end(), layer.extents.begin(), layer.extents.end());
    const size_t rank = layer.extents.size();
    Shape w = layer.transposed ? Shape{layer.in, layer.out / layer.group}
                               : Shape{layer.out, layer.in / layer.group};
    w.insert(w.end(), rank, layer.kernel);
    Attributes attrs{{"strides", Ints(rank, layer.stride)},
                     {"dilations", Ints(rank, layer.dilation)},
                     {"pads", Ints(2 * rank, layer.dilation * (layer.kernel - 1) / 2)},
                     {"group", layer.group}};
    if (layer.transposed) attrs.Set("output_padding", Ints(rank, 0));
    std::vector<ValueId> operands = {Given(shape), Given(w, 1)};
    if (rng_.Flip()) operands.push_back(Given({layer.out}, 1));
    ValueId value = Add(layer.transposed ? "ConvTranspose" : "Conv", operands, std::move(attrs));
    if (rng_.Flip()) value = Add("Add", {value, Given(builder_.type(value).shape)});
    if (rng_.Flip()) value = Add("Relu", {value});
    builder_.Output("y", value);
    return *builder_.Build();
  }

 private:
  ValueId Given(const Shape& shape, double constant = 0) {
    const Tensor tensor = Small(rng_, {dtype_, shape}, rounds_ && dtype_ == DType::kF32);
    const std::string name = Cat("t", ++names_);
    if (rng_.Flip(constant)) return builder_.Constant(tensor, name);
    inputs_.push_back(HostValue::FromTensor(tensor));
    return builder_.Input(name, tensor.type());
  }
  ValueId Add(std::string_view op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    auto value = builder_.Add(op, std::move(inputs), std::move(attrs));
    MENDEL_CHECK(value.ok());
    return *value;
  }

  ValueId Convolution(ValueId x) {
    const Shape shape = builder_.type(x).shape;
    const bool transposed = rng_.Flip(0.25);
    const int64_t group = rng_.Flip(0.3) ? shape[1] : (shape[1] % 2 == 0 && rng_.Flip(0.3) ? 2 : 1);
    const int64_t out = group * rng_.Between(1, 3);
    Shape w = transposed ? Shape{shape[1], out / group} : Shape{out, shape[1] / group};
    Ints strides, dilations, begin, end, extra;
    for (size_t d = 2; d < shape.size(); ++d) {
      w.push_back(rng_.Between(1, std::min<int64_t>(3, shape[d])));
      strides.push_back(rng_.Between(1, 2));
      dilations.push_back(2 * w.back() <= shape[d] ? rng_.Between(1, 2) : 1);
      begin.push_back(rng_.Between(0, w.back() - 1));
      end.push_back(rng_.Between(0, w.back() - 1));
      extra.push_back(rng_.Between(0, strides.back() - 1));
    }
    begin.insert(begin.end(), end.begin(), end.end());
    Attributes attrs{
        {"strides", strides}, {"dilations", dilations}, {"pads", begin}, {"group", group}};
    if (transposed) attrs.Set("output_padding", extra);
    std::vector<ValueId> operands = {x, Given(w, 0.7)};
    if (rng_.Flip()) operands.push_back(Given({out}, 0.7));
    return Add(transposed ? "ConvTranspose" : "Conv", std::move(operands), std::move(attrs));
  }

  ValueId Pool(ValueId value) {
    const Shape shape = builder_.type(value).shape;
    if (rng_.Flip(0.3)) {
      Ints sizes = shape;
      std::vector<double> scales(shape.size(), 1);
      for (size_t d = 2; d < sizes.size(); ++d) {
        scales[d] = static_cast<double>(rng_.Between(1, 2));
        sizes[d] *= static_cast<int64_t>(scales[d]);
      }
      return Add("Resize", {value},
                 {{"output_sizes", sizes},
                  {"scales", scales},
                  {"mode", rng_.Flip() ? "nearest" : "linear"}});
    }
    Ints kernel, strides;
    for (size_t d = 2; d < shape.size(); ++d) {
      kernel.push_back(rng_.Between(1, std::min<int64_t>(3, shape[d])));
      strides.push_back(rng_.Between(1, 2));
    }
    const Ints ones(kernel.size(), 1), none(2 * kernel.size(), 0);
    Attributes attrs{
        {"kernel_shape", kernel}, {"strides", strides}, {"dilations", ones}, {"pads", none}};
    return Add(rng_.Flip() ? "MaxPool" : "AveragePool", {value}, std::move(attrs));
  }

  /// Concat, Pad, Slice or Split.
  ValueId Move(ValueId value) {
    const Shape shape = builder_.type(value).shape;
    const auto axis = static_cast<size_t>(rng_.Between(1, static_cast<int64_t>(shape.size()) - 1));
    const int64_t kind = rng_.Between(0, 3);
    if (kind == 0)
      return Add("Concat", {value, rng_.Flip() ? value : Given(shape, 0.3)},
                 {{"axis", static_cast<int64_t>(axis)}});
    if (kind == 1) {
      Ints pads(2 * shape.size());
      pads[axis] = rng_.Between(0, 2);
      pads[shape.size() + axis] = rng_.Between(0, 2);
      return Add("Pad", {value},
                 {{"pads", pads}, {"value", static_cast<double>(rng_.Between(0, 1))}});
    }
    const int64_t first = rng_.Between(0, shape[axis] - 1);
    if (kind == 2 && first > 0) {
      const Ints sizes = {first, shape[axis] - first};
      const auto node = builder_.AddNode("Split", {value},
                                         {{"axis", static_cast<int64_t>(axis)}, {"sizes", sizes}});
      MENDEL_CHECK(node.ok());
      return {*node, rng_.Flip() ? 1 : 0};
    }
    Ints starts(shape.size(), 0), steps(shape.size(), 1);
    starts[axis] = first;
    steps[axis] = rng_.Between(1, 2);
    return Add("Slice", {value}, {{"starts", starts}, {"ends", shape}, {"steps", steps}});
  }

  /// Sigmoid, Silu, or a Gelu.
  ValueId Smooth(ValueId value) {
    const int64_t kind = rng_.Between(0, 3);
    if (kind > 1) return Add("Gelu", {value}, {{"approximate", kind == 2 ? "none" : "tanh"}});
    const ValueId sigmoid = Add("Sigmoid", {value});
    if (kind == 0) return sigmoid;
    return rng_.Flip() ? Add("Mul", {value, sigmoid}) : Add("Mul", {sigmoid, value});
  }

  ValueId Follower(ValueId value) {
    const Shape shape = builder_.type(value).shape;
    const double kind = rng_.Unit();
    if (kind < 0.22) return Add("Relu", {value});
    if (kind < 0.3) return Smooth(value);
    if (kind < 0.4) return Add("Neg", {value});
    if (kind < 0.45) return Add("Add", {value, value});
    if (kind < 0.5) return Pool(value);
    if (kind < 0.62) return Move(value);
    Shape other = shape;
    if (kind < 0.75) {
      other.assign(shape.size() - static_cast<size_t>(rng_.Between(0, 1)), 1);
      other[other.size() - shape.size() + 1] = shape[1];
    }
    ValueId second = Given(other, 0.4);
    if (rng_.Flip(0.3)) second = Add("Neg", {second});
    return rng_.Flip() ? Add("Add", {value, second}) : Add("Add", {second, value});
  }

  Rng rng_;
  const bool rounds_;
  DType dtype_;
  int names_ = 0;
  GraphBuilder builder_;
  std::vector<HostValue> inputs_;
};

DeviceCase CaseOf(NetMaker& maker, Graph graph, const std::string& what, Numerics numerics) {
  DeviceCase one{"", std::move(graph), {}, {}, numerics};
  one.inputs = maker.TakeInputs();
  one.description = Cat(what, ", ", NumericsName(numerics), "\n", PrintGraph(one.graph));
  return one;
}

}  // namespace

DeviceCase RandomConvolutions(uint64_t seed, Numerics numerics) {
  NetMaker maker(seed, numerics);
  Graph graph = maker.Make();
  return CaseOf(maker, std::move(graph), Cat("seed ", seed), numerics);
}

size_t LayerConvolutions() { return Layers().size(); }

DeviceCase LayerConvolution(uint64_t seed, Numerics numerics) {
  const Layer& layer = Layers()[seed % Layers().size()];
  NetMaker maker(seed, numerics);
  Graph graph = maker.Make(layer);
  return CaseOf(maker, std::move(graph), Cat(layer.network, ", seed ", seed), numerics);
}

}  // namespace mendel::cuda
