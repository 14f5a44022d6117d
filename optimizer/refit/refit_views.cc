// Views of a refit's canonical form: composed, and moved behind what they commute with.

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "optimizer/refit/refit_fold.h"

namespace mendel {
namespace {

constexpr int64_t kNoDim = -2;
constexpr std::array<std::string_view, 24> kElementwise = {
    "Abs",         "Add",       "Clip",       "Div",  "Elu",     "Erf",  "Exp",  "Gelu",
    "HardSigmoid", "HardSwish", "LeakyRelu",  "Log",  "Max",     "Min",  "Mish", "Mul",
    "Neg",         "Pow",       "Reciprocal", "Relu", "Sigmoid", "Sqrt", "Sub",  "Tanh"};

/// Does the permutation move dimensions of extent one only?
bool KeepsOrder(const Shape& shape, const Ints& perm) {
  int64_t last = -1;
  for (int64_t d : perm) {
    if (shape[static_cast<size_t>(d)] == 1) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

/// The part of a weight that a box of the value it broadcasts into needs.
Box BoxOfWeight(const Shape& weight, const Ints& starts, const Ints& ends) {
  Box box = Box::Whole(weight);
  const size_t skip = starts.size() - weight.size();
  for (size_t d = 0; d < weight.size(); ++d) {
    if (weight[d] != 1) box.begin[d] = starts[skip + d], box.end[d] = ends[skip + d];
  }
  return box;
}

}  // namespace

int64_t RefitFolder::DimBefore(RefitTerm view, int64_t dim) const {
  const Node& node = t_.node(view);
  if (node.op->name == "Transpose") return node.attrs.IntList("perm")[static_cast<size_t>(dim)];
  const Shape& from = t_.shape(node.inputs[0]);
  const Shape& to = t_.shape(view);
  const Shape from_strides = RowMajorStrides(from);
  const int64_t stride = RowMajorStrides(to)[static_cast<size_t>(dim)];
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == to[static_cast<size_t>(dim)] && from_strides[d] == stride)
      return static_cast<int64_t>(d);
  }
  return kNoDim;
}

RefitTerm RefitFolder::View(const Node& view, RefitTerm x) {
  return view.op->name == "Reshape" ? t_.Reshape(x, view.attrs.IntList("shape"))
                                    : Transposed(x, view.attrs.IntList("perm"));
}

RefitTerm RefitFolder::Transposed(RefitTerm x, const Ints& perm) {
  const Node node = t_.node(x);
  if (node.op->name == "Transpose") {
    Ints both;
    for (int64_t d : perm) both.push_back(node.attrs.IntList("perm")[static_cast<size_t>(d)]);
    return Transposed(node.inputs[0], both);
  }
  const Shape shape = t_.shape(x);
  Shape moved;
  for (int64_t d : perm) moved.push_back(shape[static_cast<size_t>(d)]);
  if (KeepsOrder(shape, perm)) return t_.Reshape(x, moved);
  // Dimensions of one element may come and go between two transpositions: they are no part of
  // either.
  Ints position(shape.size(), -1);
  Shape kept;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    position[d] = static_cast<int64_t>(kept.size());
    kept.push_back(shape[d]);
  }
  if (kept.size() == shape.size()) return t_.Op("Transpose", {x}, {{"perm", perm}});
  Ints kept_perm;
  for (int64_t d : perm) {
    if (position[static_cast<size_t>(d)] >= 0)
      kept_perm.push_back(position[static_cast<size_t>(d)]);
  }
  return t_.Reshape(Transposed(t_.Reshape(x, kept), kept_perm), moved);
}

RefitTerm RefitFolder::Sliced(RefitTerm x, const Ints& starts, const Ints& ends) {
  const Shape shape = t_.shape(x);
  const auto cut = [&](RefitTerm value, const Box& box) {
    if (box == Box::Whole(t_.shape(value))) return value;
    return t_.Op("Slice", {value},
                 {{"starts", box.begin}, {"ends", box.end}, {"steps", Ints(box.begin.size(), 1)}});
  };
  if (Box{starts, ends} == Box::Whole(shape)) return x;
  const Node node = t_.node(x);
  const std::string_view op = node.op->name;
  if ((op == "Add" || op == "Mul") && t_.IsWeight(node.inputs[1]) &&
      t_.shape(node.inputs[0]) == shape) {
    const RefitTerm weight =
        cut(node.inputs[1], BoxOfWeight(t_.shape(node.inputs[1]), starts, ends));
    const RefitTerm inner = Sliced(node.inputs[0], starts, ends);
    return op == "Mul" ? Times(inner, weight) : Plus(inner, weight);
  }
  if (op == "Transpose") {
    const Ints& perm = node.attrs.IntList("perm");
    Ints inner_starts(perm.size()), inner_ends(perm.size());
    for (size_t d = 0; d < perm.size(); ++d) {
      inner_starts[static_cast<size_t>(perm[d])] = starts[d];
      inner_ends[static_cast<size_t>(perm[d])] = ends[d];
    }
    return Transposed(Sliced(node.inputs[0], inner_starts, inner_ends), perm);
  }
  int64_t dim = -1, sliced = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (starts[d] != 0 || ends[d] != shape[d]) dim = static_cast<int64_t>(d), ++sliced;
  }
  if (sliced == 1) {
    if (const auto folded = SlicedContraction(x, starts, ends, dim)) return *folded;
    const int64_t before = op == "Reshape" ? DimBefore(x, dim) : kNoDim;
    if (before >= 0) {
      Box inner = Box::Whole(t_.shape(node.inputs[0]));
      inner.begin[static_cast<size_t>(before)] = starts[static_cast<size_t>(dim)];
      inner.end[static_cast<size_t>(before)] = ends[static_cast<size_t>(dim)];
      return t_.Reshape(Sliced(node.inputs[0], inner.begin, inner.end),
                        Box{starts, ends}.Extents());
    }
  }
  // Dimensions of one element may come and go before: they are no part of the slice.
  Shape kept;
  Box inner{{}, {}};
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    kept.push_back(shape[d]);
    inner.begin.push_back(starts[d]);
    inner.end.push_back(ends[d]);
  }
  if (kept.size() == shape.size()) return cut(x, {starts, ends});
  return t_.Reshape(cut(t_.Reshape(x, kept), inner), Box{starts, ends}.Extents());
}

std::optional<RefitTerm> RefitFolder::SlicedContraction(RefitTerm x, const Ints& starts,
                                                        const Ints& ends, int64_t dim) {
  const Node node = t_.node(x);
  const std::string_view op = node.op->name;
  if (node.inputs.size() != 2 || !t_.IsWeight(node.inputs[1])) return std::nullopt;
  const RefitTerm w = node.inputs[1];
  size_t weight_dim = 0;
  if (op == "MatMul" && dim + 1 == static_cast<int64_t>(starts.size()) && t_.shape(w).size() == 2) {
    weight_dim = 1;
  } else if ((op == "Conv" || op == "ConvTranspose") && dim == 1 && node.attrs.Int("group") == 1) {
    weight_dim = op == "Conv" ? 0 : 1;
  } else {
    return std::nullopt;
  }
  Box box = Box::Whole(t_.shape(w));
  box.begin[weight_dim] = starts[static_cast<size_t>(dim)];
  box.end[weight_dim] = ends[static_cast<size_t>(dim)];
  const RefitTerm part =
      t_.Op("Slice", {w},
            {{"starts", box.begin}, {"ends", box.end}, {"steps", Ints(box.begin.size(), 1)}});
  return t_.Op(op, {node.inputs[0], part}, node.attrs);
}

std::optional<RefitTerm> RefitFolder::Elementwise(const Node& node,
                                                  const std::vector<RefitTerm>& inputs) {
  if (std::find(kElementwise.begin(), kElementwise.end(), node.op->name) == kElementwise.end())
    return std::nullopt;
  const Shape& shape = node.outputs[0].shape;
  const auto scalar = [&](RefitTerm x) { return t_.IsWeight(x) && NumElements(t_.shape(x)) == 1; };
  const auto fits = [&](RefitTerm x) { return scalar(x) || t_.shape(x) == shape; };
  if (!std::all_of(inputs.begin(), inputs.end(), fits) ||
      std::all_of(inputs.begin(), inputs.end(), scalar))
    return std::nullopt;
  std::vector<RefitTerm> operands = inputs;
  for (RefitTerm& x : operands) {
    if (scalar(x)) x = Spread(x, 0, -1);
  }
  return ElementwiseOf(node, std::move(operands));
}

RefitTerm RefitFolder::ElementwiseOf(const Node& node, std::vector<RefitTerm> operands) {
  std::optional<Shape> shape;
  std::optional<Shape> own;  // of elements before views: that of the fewest dimensions
  std::optional<Ints> perm;
  bool transposed = true;
  for (RefitTerm x : operands) {
    if (t_.shape(x).empty()) continue;
    shape = t_.shape(x);
    const Node& view = t_.node(x);
    const Shape& before = view.op->name == "Reshape" ? t_.shape(view.inputs[0]) : *shape;
    if (!own.has_value() || std::pair(before.size(), before) < std::pair(own->size(), *own))
      own = before;
    transposed = transposed && view.op->name == "Transpose" &&
                 (!perm.has_value() || *perm == view.attrs.IntList("perm"));
    if (transposed) perm = view.attrs.IntList("perm");
  }
  if (!shape.has_value() || (!transposed && own == shape))
    return t_.Op(node.op->name, std::move(operands), node.attrs);
  for (RefitTerm& x : operands) {
    if (!t_.shape(x).empty()) x = transposed ? t_.node(x).inputs[0] : t_.Reshape(x, *own);
  }
  const RefitTerm result = ElementwiseOf(node, std::move(operands));
  return transposed ? Transposed(result, *perm) : t_.Reshape(result, *shape);
}

std::vector<RefitTerm> RefitFolder::Pieces(const Node& split, RefitTerm x) {
  const size_t axis = static_cast<size_t>(split.attrs.Int("axis"));
  Box box = Box::Whole(t_.shape(x));
  std::vector<RefitTerm> pieces;
  box.end[axis] = 0;
  for (int64_t size : split.attrs.IntList("sizes")) {
    box.begin[axis] = box.end[axis];
    box.end[axis] += size;
    pieces.push_back(Sliced(x, box.begin, box.end));
  }
  return pieces;
}

}  // namespace mendel
