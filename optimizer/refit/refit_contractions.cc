// Contractions of a refit's canonical form: they take in the products and sums around them.

#include <algorithm>
#include <utility>

#include "optimizer/refit/refit_fold.h"

namespace mendel {
namespace {

bool AllEqual(const Ints& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
}

}  // namespace

RefitTerm RefitFolder::ScaledByGroup(RefitTerm w, RefitTerm factor, int64_t groups, size_t dim) {
  const Shape shape = t_.shape(w);
  if (groups == 1 || dim == 0)
    return Scaled(w, Spread(factor, shape.size(), static_cast<int64_t>(dim)));
  Shape grouped = shape;
  grouped[0] /= groups;
  grouped.insert(grouped.begin(), groups);
  Shape factors(grouped.size(), 1);
  factors[0] = groups;
  factors[2] = shape[1];
  return t_.Reshape(Scaled(t_.Reshape(w, grouped), t_.Reshape(factor, factors)), shape);
}

std::optional<RefitTerm> RefitFolder::ScaledContraction(RefitTerm x, RefitTerm m) {
  const Node node = t_.node(x);
  const std::string_view op = node.op->name;
  if (node.inputs.size() != 2) return std::nullopt;
  const RefitTerm a = node.inputs[0];
  const RefitTerm b = node.inputs[1];
  const std::optional<int64_t> along = Along(m, t_.shape(x));
  if (op == "MatMul" && (t_.IsWeight(a) || t_.IsWeight(b))) {
    // A factor that varies along the dimension that the sum runs over, or along batches, cannot
    // move into the weight.
    const bool right = t_.IsWeight(b);
    const int64_t last = static_cast<int64_t>(t_.shape(x).size()) - 1;
    if (!along.has_value() || (*along != -1 && *along != (right ? last : last - 1)))
      return std::nullopt;
    const RefitTerm factor =
        right ? Spread(m, 1, *along < 0 ? -1 : 0) : Spread(m, 2, *along < 0 ? -1 : 0);
    return right ? Product(a, Scaled(b, factor)) : t_.Op("MatMul", {Scaled(a, factor), b});
  }
  if (op == "MatMul" && along == -1) return t_.Op("MatMul", {Times(a, Spread(m, 1, -1)), b});
  if ((op != "Conv" && op != "ConvTranspose") || !t_.IsWeight(b) || !along.has_value() ||
      (*along != 1 && *along != -1)) {
    return std::nullopt;
  }
  if (*along == -1) return t_.Op(op, {a, Scaled(b, Spread(m, t_.shape(b).size(), -1))}, node.attrs);
  return t_.Op(op, {a, ScaledByGroup(b, m, node.attrs.Int("group"), op == "Conv" ? 0 : 1)},
               node.attrs);
}

RefitTerm RefitFolder::Convolution(const Node& node, const std::vector<RefitTerm>& in) {
  const RefitTerm core = ConvolutionOf(node, in[0], in[1]);
  return in.size() < 3 ? core : Plus(core, Spread(in[2], t_.shape(core).size(), 1));
}

RefitTerm RefitFolder::ConvolutionOf(const Node& node, RefitTerm x, RefitTerm w) {
  const Node before = t_.node(x);
  const bool transposed = node.op->name == "ConvTranspose";
  if ((before.op->name == "Mul" || before.op->name == "Add") && t_.IsWeight(before.inputs[1]) &&
      t_.shape(before.inputs[0]) == t_.shape(x)) {
    const RefitTerm m = before.inputs[1];
    const std::optional<int64_t> along = Along(m, t_.shape(x));
    const bool channels = along == 1 || along == -1;
    if (channels && before.op->name == "Mul") {
      const RefitTerm factor =
          along == 1 ? ScaledByGroup(w, m, node.attrs.Int("group"), transposed ? 0 : 1)
                     : Scaled(w, Spread(m, t_.shape(w).size(), -1));
      return ConvolutionOf(node, before.inputs[0], factor);
    }
    // The addend of a convolution's own result is its bias, in both programs.
    const bool bias = t_.node(before.inputs[0]).op->name.starts_with("Conv");
    if (channels && !bias && !transposed && AllEqual(node.attrs.IntList("pads"), 0)) {
      return Plus(ConvolutionOf(node, before.inputs[0], w),
                  ShiftOf(node, Spread(m, t_.shape(x).size(), *along), w));
    }
  }
  return t_.Op(node.op->name, {x, w}, node.attrs);
}

/// The addend of the output for a constant `t` added to every channel of the input: the kernel
/// applied to one window of it.
RefitTerm RefitFolder::ShiftOf(const Node& conv, RefitTerm t, RefitTerm w) {
  const Shape& kernel = t_.shape(w);
  Shape window = kernel;
  window[0] = 1;
  window[1] = kernel[1] * conv.attrs.Int("group");
  const size_t rank = kernel.size();
  const Attributes attrs{{"strides", Ints(rank - 2, 1)},
                         {"dilations", Ints(rank - 2, 1)},
                         {"pads", Ints(2 * (rank - 2), 0)},
                         {"group", conv.attrs.Int("group")}};
  return t_.Op("Conv", {t_.Op("Expand", {t}, {{"shape", window}}), w}, attrs);
}

RefitTerm RefitFolder::Product(RefitTerm a, RefitTerm b) {
  if (!t_.IsWeight(a) && t_.IsWeight(b) && t_.shape(b).size() == 2) return MatrixProduct(a, b);
  return t_.Op("MatMul", {a, b});
}

RefitTerm RefitFolder::MatrixProduct(RefitTerm x, RefitTerm w) {
  const Shape shape = t_.shape(x);
  // Rows may be spread over any dimensions: the operand of such a view takes its place.
  if (t_.node(x).op->name == "Reshape" && t_.shape(t_.node(x).inputs[0]).back() == shape.back() &&
      t_.shape(t_.node(x).inputs[0]).size() >= 2) {
    Shape result = shape;
    result.back() = t_.shape(w)[1];
    return t_.Reshape(MatrixProduct(t_.node(x).inputs[0], w), result);
  }
  const Node node = t_.node(x);
  const std::string_view op = node.op->name;
  const int64_t last = static_cast<int64_t>(shape.size()) - 1;
  if ((op == "Mul" || op == "Add") && t_.IsWeight(node.inputs[1]) &&
      t_.shape(node.inputs[0]) == shape) {
    const RefitTerm m = node.inputs[1];
    const std::optional<int64_t> along = Along(m, shape);
    if ((along == last || along == -1) && op == "Mul") {
      return MatrixProduct(node.inputs[0], Scaled(w, Spread(m, 2, *along == last ? 0 : -1)));
    }
    if (along == last || along == -1) {
      const RefitTerm row = t_.Op("Expand", {Spread(m, 2, *along == last ? 1 : -1)},
                                  {{"shape", Shape{1, shape.back()}}});
      return Plus(MatrixProduct(node.inputs[0], w), Spread(t_.Op("MatMul", {row, w}), 1, 0));
    }
  }
  if (op == "MatMul" && t_.IsWeight(node.inputs[1]) && t_.shape(node.inputs[1]).size() == 2) {
    return MatrixProduct(node.inputs[0], t_.Op("MatMul", {node.inputs[1], w}));
  }
  if (shape.size() == 2) return t_.Op("MatMul", {x, w});
  Shape result = shape;
  result.back() = t_.shape(w)[1];
  const RefitTerm matrix =
      t_.Reshape(x, {NumElements(Shape(shape.begin(), shape.end() - 1)), shape.back()});
  return t_.Reshape(t_.Op("MatMul", {matrix, w}), result);
}

}  // namespace mendel
