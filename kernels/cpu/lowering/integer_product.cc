#include "kernels/cpu/lowering/integer_product.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "kernels/cpu/lowering/integer_weights.h"
#include "kernels/cpu/lowering/lower_integer.h"
#include "runtime/quantized.h"

namespace mendel::cpu {
namespace {

/// Deeper sums could leave 32 bits, whatever the zero points.
constexpr int64_t kMostDepth = 1 << 15;

/// Follows the value through the nodes that a product can compute.
class IntegerChain {
 public:
  IntegerChain(const Graph& graph, Folded& folded, const std::vector<int32_t>& owner, int32_t root,
               std::vector<double> scale)
      : graph_(graph),
        folded_(folded),
        owner_(owner),
        value_{root, 0},
        channel_dim_(graph.node(root).op->name == "Conv" ? 1
                                                         : graph.type({root, 0}).shape.size() - 1),
        scale_(std::move(scale)),
        shift_(scale_.size(), 0.0) {
    product_.nodes = {root};
  }

  /// A bias of the contraction itself.
  bool AddBias(ValueId bias) {
    if (!folded_.IsConstant(bias)) return false;
    const HostValue values = folded_.Exact(bias);
    for (size_t c = 0; c < shift_.size(); ++c) shift_[c] += values.At(static_cast<int64_t>(c));
    return true;
  }

  /// False when the result would be neither f32 nor codes.
  bool Grow() {
    if (graph_.type(value_).dtype == DType::kI32) {
      const int32_t cast = Next("Cast");
      if (cast < 0 || graph_.type({cast, 0}).dtype != DType::kF32) return false;
      Take(cast);
    }
    while (Affine() || Activate()) {
    }
    Quantize();
    return true;
  }

  IntegerProduct Finish() {
    for (size_t c = 0; c < scale_.size(); ++c) {
      product_.scale.push_back(static_cast<float>(scale_[c]));
      product_.bias.push_back(static_cast<float>(shift_[c] / scale_[c]));
    }
    const auto none = [](float x) { return x == 0; };
    if (std::all_of(product_.bias.begin(), product_.bias.end(), none)) product_.bias.clear();
    return std::move(product_);
  }

 private:
  /// The only user of `value_`, if it is of this operator and free.
  int32_t Next(std::string_view op) const { return NextAfter(value_.node, op); }
  int32_t NextAfter(int32_t node, std::string_view op) const {
    const int32_t user = graph_.OnlyUser(node);
    if (user < 0 || owner_[static_cast<size_t>(user)] >= 0) return -1;
    const Node& next = graph_.node(user);
    if (next.op->name != op || next.outputs[0].shape != graph_.type(value_).shape) return -1;
    return std::count(next.inputs.begin(), next.inputs.end(), ValueId{node, 0}) == 1 ? user : -1;
  }
  void Take(int32_t node) {
    product_.nodes.push_back(node);
    value_ = {node, 0};
  }

  /// A constant operand with one number, or one a channel.
  std::optional<std::vector<double>> Numbers(ValueId value) const {
    if (!folded_.IsConstant(value)) return std::nullopt;
    const Shape& shape = graph_.type(value).shape;
    const size_t rank = graph_.type(value_).shape.size();
    const HostValue numbers = folded_.Exact(value);
    if (NumElements(shape) == 1) return std::vector<double>(scale_.size(), numbers.At(0));
    const size_t at = channel_dim_ + shape.size();
    if (at < rank || NumElements(shape) != static_cast<int64_t>(scale_.size()) ||
        shape[at - rank] != NumElements(shape))
      return std::nullopt;
    return numbers.scalars;
  }
  std::optional<double> Number(ValueId value) const {
    if (!folded_.IsConstant(value) || NumElements(graph_.type(value)) != 1) return std::nullopt;
    return folded_.Exact(value).At(0);
  }

  /// Factors and summands before any activation.
  bool Affine() {
    if (!product_.activations.empty()) return false;
    for (const std::string_view op : {"Add", "Mul"}) {
      const int32_t id = Next(op);
      if (id < 0) continue;
      const Node& node = graph_.node(id);
      const auto numbers = Numbers(node.inputs[node.inputs[0] == value_ ? 1 : 0]);
      if (!numbers.has_value()) return false;
      for (size_t c = 0; c < scale_.size(); ++c) {
        const double number = (*numbers)[c];
        if (op == "Mul" && number == 0) return false;
        scale_[c] *= op == "Mul" ? number : 1;
        shift_[c] = op == "Mul" ? shift_[c] * number : shift_[c] + number;
      }
      Take(id);
      return true;
    }
    return false;
  }

  bool Activate() {
    if (!product_.activations.empty()) return false;
    for (const std::string_view op : {"Relu", "Clip"}) {
      const int32_t id = Next(op);
      if (id < 0) continue;
      const std::optional<Activation> activation = ActivationOf(graph_.node(id));
      if (!activation.has_value()) return false;
      product_.activations.push_back(*activation);
      Take(id);
      return true;
    }
    return false;
  }

  /// Cast(Clip(Round(value / scale) + zero)), where the type saturates where the clip ends.
  void Quantize() {
    const int32_t divide = Next("Div");
    const int32_t round = divide < 0 ? -1 : NextAfter(divide, "Round");
    if (round < 0 || graph_.node(divide).inputs[0] != value_) return;
    const std::optional<double> step = Number(graph_.node(divide).inputs[1]);
    int32_t last = round;
    double zero = 0;
    std::vector<int32_t> nodes = {divide, round};
    if (const int32_t add = NextAfter(round, "Add"); add >= 0) {
      const Node& node = graph_.node(add);
      const auto number = Number(node.inputs[node.inputs[0] == ValueId{round, 0} ? 1 : 0]);
      if (!number.has_value() || *number != std::rint(*number)) return;
      zero = *number;
      nodes.push_back(last = add);
    }
    const int32_t clip = NextAfter(last, "Clip");
    const int32_t cast = clip < 0 ? -1 : NextAfter(clip, "Cast");
    if (cast < 0 || !step.has_value() || !(*step > 0) || !std::isfinite(1 / *step)) return;
    const DType to = graph_.type({cast, 0}).dtype;
    const Attributes& bounds = graph_.node(clip).attrs;
    if ((to != DType::kU8 && to != DType::kI8) ||
        bounds.Float("min") != static_cast<double>(LowestInteger(to)) ||
        bounds.Float("max") != static_cast<double>(HighestInteger(to)) ||
        zero < bounds.Float("min") || zero > bounds.Float("max"))
      return;
    for (size_t c = 0; c < scale_.size(); ++c) {
      scale_[c] /= *step;
      shift_[c] /= *step;
    }
    for (Activation& activation : product_.activations) {
      activation.alpha = static_cast<float>(static_cast<double>(activation.alpha) / *step);
      activation.beta = static_cast<float>(static_cast<double>(activation.beta) / *step);
    }
    product_.result = to;
    product_.result_zero = static_cast<int32_t>(zero);
    product_.rounds = product_.result_zero % 2 != 0;
    nodes.insert(nodes.end(), {clip, cast});
    for (const int32_t node : nodes) Take(node);
  }

  const Graph& graph_;
  Folded& folded_;
  const std::vector<int32_t>& owner_;
  ValueId value_;
  size_t channel_dim_;
  std::vector<double> scale_, shift_;  ///< of the sums of integers, one a channel
  IntegerProduct product_;
};

/// One factor an output channel; nullopt where the scale varies within a channel.
std::optional<std::vector<double>> ScalesOf(const std::vector<double>& scale, int64_t channels,
                                            bool last) {
  std::vector<double> scales(static_cast<size_t>(channels));
  const size_t count = scale.size() / scales.size();
  for (size_t c = 0; c < scales.size(); ++c) {
    for (size_t i = 0; i < count; ++i) {
      const double factor = scale[last ? i * scales.size() + c : c * count + i];
      if (i > 0 && factor != scales[c]) return std::nullopt;
      scales[c] = factor;
    }
    if (scales[c] == 0 || !std::isfinite(scales[c])) return std::nullopt;
  }
  return scales;
}

/// nullopt when some are larger than a difference of two codes.
std::optional<std::vector<int16_t>> SmallIntegersOf(const std::vector<double>& whole) {
  std::vector<int16_t> integers;
  integers.reserve(whole.size());
  for (const double value : whole) {
    if (std::abs(value) > 255) return std::nullopt;
    integers.push_back(static_cast<int16_t>(value));
  }
  return integers;
}

std::shared_ptr<const IntegerOperand> FindOperand(const Graph& graph, Folded& folded, ValueId value,
                                                  bool conv) {
  const std::optional<IntegerWeights> weights = FindIntegerWeights(graph, folded, value);
  if (!weights.has_value()) return nullptr;
  auto integers = SmallIntegersOf(weights->whole);
  const Shape& shape = graph.type(value).shape;
  auto scales = ScalesOf(weights->scale, conv ? shape[0] : shape[1], !conv);
  if (!integers.has_value() || !scales.has_value()) return nullptr;
  return std::make_shared<const IntegerOperand>(
      IntegerOperand{std::move(*integers), std::move(*scales)});
}

/// True when oneDNN's types hold the product's.
bool SuitsOneDnn(const IntegerProduct& product) {
  return product.result != DType::kI32 &&
         std::all_of(product.weights->integers.begin(), product.weights->integers.end(),
                     [](int16_t weight) { return weight >= -128 && weight <= 127; });
}

bool IsFinite(const IntegerProduct& product) {
  const auto finite = [](float x) { return std::isfinite(x); };
  return std::all_of(product.scale.begin(), product.scale.end(), finite) &&
         std::all_of(product.bias.begin(), product.bias.end(), finite);
}

bool IsCandidate(const Graph& graph, Folded& folded, int32_t root) {
  const Node& node = graph.node(root);
  if (node.op->name != "Conv" && node.op->name != "MatMul") return false;
  const DType dtype = node.outputs[0].dtype;
  if (dtype != DType::kF32 && (dtype != DType::kI32 || node.op->name != "MatMul")) return false;
  const Shape& weights = graph.type(node.inputs[1]).shape;
  if (NumElements(node.outputs[0]) == 0 || NumElements(weights) == 0 ||
      !folded.IsConstant(node.inputs[1]))
    return false;
  if (node.op->name == "MatMul") return weights.size() == 2 && weights[0] <= kMostDepth;
  return weights.size() <= 5 &&
         NumElements(weights) / std::max<int64_t>(1, weights[0]) <= kMostDepth;
}

}  // namespace

std::shared_ptr<const IntegerProduct> FindIntegerProduct(const Graph& graph, Folded& folded,
                                                         const std::vector<int32_t>& owner,
                                                         int32_t root, bool scaled,
                                                         IntegerOperands& operands) {
  if (!MultipliesInt8() || !IsCandidate(graph, folded, root)) return nullptr;
  const Node& node = graph.node(root);
  const bool sums = node.outputs[0].dtype == DType::kI32;
  if (!scaled && !sums) return nullptr;
  const std::optional<QuantizedOperand> source = FindQuantizedOperand(graph, node.inputs[0]);
  if (!source.has_value() || folded.IsConstant(source->codes)) return nullptr;
  const auto number = [&](ValueId value) { return NumElements(graph.type(value)) == 1; };
  if (source->zero.has_value() && !number(*source->zero)) return nullptr;
  double source_scale = 1;
  if (source->scale.has_value()) {
    if (!number(*source->scale) || !folded.IsConstant(*source->scale)) return nullptr;
    source_scale = folded.Exact(*source->scale).At(0);
  }
  const bool conv = node.op->name == "Conv";
  const auto [known, is_new] = operands.known.try_emplace(node.inputs[1]);
  if (is_new) known->second = FindOperand(graph, folded, node.inputs[1], conv);
  if (known->second == nullptr) return nullptr;
  std::vector<double> scales = known->second->scales;
  for (double& scale : scales) scale *= source_scale;
  IntegerChain chain(graph, folded, owner, root, std::move(scales));
  if (conv && node.inputs.size() > 2 && !chain.AddBias(node.inputs[2])) return nullptr;
  auto product = std::make_shared<IntegerProduct>();
  if (scaled && chain.Grow()) {
    *product = chain.Finish();
  } else if (sums) {
    product->nodes = {root};
    product->result = DType::kI32;
  } else {
    return nullptr;
  }
  product->source = source->codes;
  product->weights = known->second;
  if (source->zero.has_value() && folded.IsConstant(*source->zero)) {
    const double zero = folded.Exact(*source->zero).At(0);
    if (zero < -128 || zero > 255) return nullptr;
    product->source_zero = static_cast<int32_t>(zero);
  } else if (source->zero.has_value()) {
    const Node& cast = graph.node(source->zero->node);
    if (cast.op->name != "Cast" || DTypeSize(graph.type(cast.inputs[0]).dtype) != 1) return nullptr;
    product->runtime_zero = source->zero;
  }
  if (!IsFinite(*product)) return nullptr;
  if (SumsInt8Exactly() && SuitsOneDnn(*product))
    product->chosen = ChooseInteger(graph, root, *product);
  if (product->chosen.has_value()) return product;
  product->native = NativeInteger(graph, root, *product);
  if (product->native == nullptr) return nullptr;
  product->packed = conv ? nullptr : operands.packed[node.inputs[1]];
  if (product->packed == nullptr) {
    product->packed =
        std::make_shared<const PackedIntegers>(*product->native, StoredOf(graph, root, *product));
    if (!conv) operands.packed[node.inputs[1]] = product->packed;
  }
  return product;
}

std::vector<ValueId> OperandsOf(const IntegerProduct& product) {
  std::vector<ValueId> operands = {product.source};
  if (product.runtime_zero.has_value()) operands.push_back(*product.runtime_zero);
  return operands;
}

}  // namespace mendel::cpu
