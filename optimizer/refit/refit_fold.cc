#include "optimizer/refit/refit_fold.h"

#include <algorithm>

namespace mendel {
namespace {

/// Products and sums that move through longer chains than this stay where they are.
constexpr int kMaxDepth = 200;

class DepthGuard {
 public:
  explicit DepthGuard(int& depth) : depth_(++depth) {}
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  int& depth_;
};

}  // namespace

RefitTerm RefitFolder::Scaled(RefitTerm weight, RefitTerm factor) {
  const std::optional<Shape> both = BroadcastShapes(t_.shape(weight), t_.shape(factor));
  if (both == t_.shape(weight) && (t_.IsFilled(factor, 1) || t_.IsFilled(weight, 0))) return weight;
  if (both == t_.shape(factor) && (t_.IsFilled(weight, 1) || t_.IsFilled(factor, 0))) return factor;
  // A single number (1 / 6 of an activation spelled out, before the weights) stays outermost, where
  // the other program has it, too.
  const Node node = t_.node(weight);
  const auto single = [&](RefitTerm term) { return NumElements(t_.shape(term)) == 1; };
  if (node.op->name == "Mul" && !single(factor) && single(node.inputs[1]) &&
      t_.shape(node.inputs[0]) == t_.shape(weight)) {
    return Scaled(Scaled(node.inputs[0], factor), node.inputs[1]);
  }
  return t_.Op("Mul", {weight, factor});
}

RefitTerm RefitFolder::Sum(RefitTerm a, RefitTerm b) {
  const std::optional<Shape> both = BroadcastShapes(t_.shape(a), t_.shape(b));
  if (both == t_.shape(a) && t_.IsFilled(b, 0)) return a;
  if (both == t_.shape(b) && t_.IsFilled(a, 0)) return b;
  return t_.Op("Add", {a, b});
}

RefitTerm RefitFolder::Negated(RefitTerm weight) {
  if (t_.IsFilled(weight, 0)) return weight;
  if (t_.node(weight).op->name == "Neg") return t_.node(weight).inputs[0];
  return t_.Op("Neg", {weight});
}

RefitTerm RefitFolder::Inverse(RefitTerm weight) {
  return t_.IsFilled(weight, 1) ? weight : t_.Op("Reciprocal", {weight});
}

RefitTerm RefitFolder::Spread(RefitTerm m, size_t rank, int64_t dim) {
  Shape shape(rank, 1);
  if (dim >= 0) shape[static_cast<size_t>(dim)] = NumElements(t_.type(m));
  return t_.Reshape(m, std::move(shape));
}

std::optional<int64_t> RefitFolder::Along(RefitTerm m, const Shape& of) const {
  const Shape& shape = t_.shape(m);
  if (shape.size() > of.size()) return std::nullopt;
  int64_t along = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    const size_t dim = of.size() - shape.size() + d;
    if (along >= 0 || shape[d] != of[dim]) return std::nullopt;
    along = static_cast<int64_t>(dim);
  }
  return along;
}

std::optional<RefitTerm> RefitFolder::BehindView(RefitTerm x, RefitTerm m, bool product) {
  const Node view = t_.node(x);
  if (view.op->name != "Reshape" && view.op->name != "Transpose") return std::nullopt;
  const std::optional<int64_t> along = Along(m, t_.shape(x));
  if (!along.has_value()) return std::nullopt;
  const int64_t before = *along < 0 ? -1 : DimBefore(x, *along);
  if (before < -1) return std::nullopt;
  const RefitTerm inner = view.inputs[0];
  const RefitTerm moved = Spread(m, t_.shape(inner).size(), before);
  return View(view, product ? Times(inner, moved) : Plus(inner, moved));
}

RefitTerm RefitFolder::Times(RefitTerm x, RefitTerm m) {
  const DepthGuard guard(depth_);
  const Shape shape = t_.shape(x);
  if (BroadcastShapes(shape, t_.shape(m)) != shape || depth_ > kMaxDepth)
    return t_.Op("Mul", {x, m});
  if (t_.IsFilled(m, 1)) return x;
  const Node node = t_.node(x);
  if ((node.op->name == "Add" || node.op->name == "Mul") && t_.IsWeight(node.inputs[1]) &&
      t_.shape(node.inputs[0]) == shape) {
    const RefitTerm folded = Scaled(node.inputs[1], m);
    return node.op->name == "Mul" ? Times(node.inputs[0], folded)
                                  : Plus(Times(node.inputs[0], m), folded);
  }
  if (const auto folded = ScaledContraction(x, m)) return *folded;
  if (const auto folded = BehindView(x, m, true)) return *folded;
  return t_.Op("Mul", {x, m});
}

RefitTerm RefitFolder::Plus(RefitTerm x, RefitTerm t) {
  const DepthGuard guard(depth_);
  const Shape shape = t_.shape(x);
  if (BroadcastShapes(shape, t_.shape(t)) != shape || depth_ > kMaxDepth)
    return t_.Op("Add", {x, t});
  if (t_.IsFilled(t, 0)) return x;
  const Node node = t_.node(x);
  if (node.op->name == "Add" && t_.IsWeight(node.inputs[1]) && t_.shape(node.inputs[0]) == shape) {
    return Plus(node.inputs[0], Sum(node.inputs[1], t));
  }
  if (const auto folded = BehindView(x, t, false)) return *folded;
  return t_.Op("Add", {x, t});
}

/// The factor scale / sqrt(var + epsilon) is a BatchNormalization of ones, so that the verifier
/// meets the function that it knows.
RefitTerm RefitFolder::BatchNorm(const Node& node, const std::vector<RefitTerm>& in) {
  const TensorType channel = t_.type(in[1]);
  const size_t rank = t_.shape(in[0]).size();
  const TensorType row{channel.dtype, {1, channel.shape[0]}};
  const RefitTerm ones = t_.Constant(Tensor::Filled(row, 1), "");
  const RefitTerm zeros = t_.Constant(Tensor::Filled(channel, 0), "");
  const RefitTerm factor = t_.Reshape(
      t_.Op("BatchNormalization", {ones, in[1], zeros, zeros, in[4]}, node.attrs), channel.shape);
  const RefitTerm shift = Sum(in[2], Negated(Scaled(in[3], factor)));
  return Plus(Times(in[0], Spread(factor, rank, 1)), Spread(shift, rank, 1));
}

std::optional<RefitTerm> RefitFolder::FoldOne(const Node& node, const std::vector<RefitTerm>& in) {
  const std::string_view op = node.op->name;
  const auto weight = [&](size_t k) { return k < in.size() && t_.IsWeight(in[k]); };
  const bool weights_follow = [&] {
    for (size_t k = 1; k < in.size(); ++k) {
      if (!weight(k)) return false;
    }
    return !weight(0);
  }();
  if (op == "Mul" && (weight(0) || weight(1)))
    return weight(1) ? Times(in[0], in[1]) : Times(in[1], in[0]);
  if (op == "Add" && (weight(0) || weight(1)))
    return weight(1) ? Plus(in[0], in[1]) : Plus(in[1], in[0]);
  if (op == "Sub" && weight(1)) return Plus(in[0], Negated(in[1]));
  const RefitTerm minus_one = t_.Constant(Tensor::Scalar(t_.type(in[0]).dtype, -1), "");
  if (op == "Sub" && weight(0) && IsFloat(t_.type(in[1]).dtype))
    return Plus(Times(in[1], minus_one), in[0]);
  if (op == "Neg" && IsFloat(t_.type(in[0]).dtype)) return Times(in[0], minus_one);
  if (op == "Div" && weight(1)) return Times(in[0], Inverse(in[1]));
  if (op == "BatchNormalization" && weights_follow) return BatchNorm(node, in);
  if ((op == "Conv" || op == "ConvTranspose") && weights_follow) return Convolution(node, in);
  if (op == "MatMul") return Product(in[0], in[1]);
  if (op == "Cast" && t_.type(in[0]) == node.outputs[0]) return in[0];
  if (op == "Reshape" || op == "Transpose") return View(node, in[0]);
  if (op == "Slice") {
    const Ints& steps = node.attrs.IntList("steps");
    const bool dense =
        std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; });
    if (dense) return Sliced(in[0], node.attrs.IntList("starts"), node.attrs.IntList("ends"));
  }
  return std::nullopt;
}

std::vector<RefitTerm> RefitFolder::WeightNode(const Node& node, const std::vector<RefitTerm>& in) {
  if (node.op->name == "Mul") return {Scaled(in[0], in[1])};
  if (node.op->name == "Add") return {Sum(in[0], in[1])};
  if (node.op->linear_inputs != nullptr && node.outputs.size() == 1) {
    std::vector<TensorType> types;
    for (RefitTerm input : in) types.push_back(t_.type(input));
    const uint32_t linear = node.op->linear_inputs(NodeView{types, node.attrs, node.outputs});
    for (size_t k = 0; k < in.size() && k < 32; ++k) {
      if (((linear >> k) & 1) != 0 && t_.IsFilled(in[k], 0))
        return {t_.Constant(Tensor::Filled(node.outputs[0], 0), "")};
    }
  }
  return t_.Ops(node.op->name, in, node.attrs);
}

std::vector<RefitTerm> RefitFolder::Fold(const Node& node, const std::vector<RefitTerm>& inputs) {
  if (!IsFloat(node.outputs[0].dtype)) return t_.Ops(node.op->name, inputs, node.attrs);
  if (std::all_of(inputs.begin(), inputs.end(), [&](RefitTerm x) { return t_.IsWeight(x); }))
    return WeightNode(node, inputs);
  if (node.op->name == "Split") return Pieces(node, inputs[0]);
  const std::optional<RefitTerm> folded = FoldOne(node, inputs);
  if (folded.has_value() && t_.type(*folded) == node.outputs[0]) return {*folded};
  if (const auto moved = Elementwise(node, inputs)) return {*moved};
  return t_.Ops(node.op->name, inputs, node.attrs);
}

}  // namespace mendel
