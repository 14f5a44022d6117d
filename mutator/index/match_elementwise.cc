// Elementwise products, and sums over the windows of one factor.

#include <algorithm>

#include "graph/window.h"
#include "mutator/index/realize.h"

namespace mendel {
namespace {

bool IsAmong(const std::vector<Iterator>& list, Iterator i) {
  return std::find(list.begin(), list.end(), i) != list.end();
}

/// One spatial dimension of a pool, the positions that it reads, and its iterator of the result.
struct PoolDim {
  Window window;
  int64_t begin = 0, end = 0;
  Iterator p = -1;
};

/// stride * p + dilation * k + constant, k summed; nullopt for other forms.
std::optional<PoolDim> PoolDimOf(const IndexTerm& term, const IndexForm& form, int64_t input,
                                 const Extents& extents) {
  if (form.divisor != 1 || form.affine.terms.size() > 2) return std::nullopt;
  PoolDim dim;
  int64_t outputs = 1;
  for (const auto& [i, coefficient] : form.affine.terms) {
    if (coefficient < 1 || OccurrencesOf(term, i).size() != 1) return std::nullopt;
    if (IsAmong(term.sums, i)) {
      if (dim.window.kernel > 1) return std::nullopt;
      dim.window.kernel = extents[static_cast<size_t>(i)];
      dim.window.dilation = coefficient;
    } else {
      if (dim.p >= 0) return std::nullopt;
      dim.p = i;
      dim.window.stride = coefficient;
      outputs = extents[static_cast<size_t>(i)];
    }
  }
  if (dim.p < 0) return std::nullopt;
  Window& window = dim.window;
  const int64_t last =
      form.affine.constant + window.stride * (outputs - 1) + window.dilation * (window.kernel - 1);
  dim.begin = std::max<int64_t>(0, form.affine.constant);
  dim.end = std::min(input, last + 1);
  window.pad_begin = dim.begin - form.affine.constant;
  window.pad_end = last + 1 - dim.end;
  window.input = input;
  // Positions that no window reads stay where they do not add a window.
  Window whole = window;
  if (dim.begin == 0 && whole.OutputExtent() == outputs) dim.end = input;
  if (dim.begin >= dim.end) return std::nullopt;
  return dim;
}

}  // namespace

std::optional<IndexedValue> EmitMul(Emitter& e, const Product& product) {
  std::vector<Iterator> order;
  const auto used = [&](Iterator i) {
    return Uses(product.term.factors[0], i) || Uses(product.term.factors[1], i);
  };
  for (const auto* list : {&product.order, &product.term.sums}) {
    for (const Iterator i : *list) {
      if (used(i)) order.push_back(i);
    }
  }
  std::vector<ValueId> operands;
  for (size_t side = 0; side < 2; ++side) {
    operands.push_back(EmitView(e, product.operands[side], product.term.factors[side].index, order,
                                product.extents));
  }
  IndexedValue result{e.Mul(operands[0], operands[1]), order};
  Ints axes;
  for (size_t d = 0; d < order.size(); ++d) {
    if (IsAmong(product.term.sums, order[d])) axes.push_back(static_cast<int64_t>(d));
  }
  if (axes.empty()) return result;
  result.value = e.Op("ReduceSum", {result.value}, {{"axes", axes}, {"keepdims", int64_t{0}}});
  std::erase_if(result.dims, [&](Iterator i) { return IsAmong(product.term.sums, i); });
  return result;
}

std::optional<IndexedValue> EmitPool(Emitter& e, const IndexTerm& term, ValueId tensor,
                                     const std::vector<Iterator>&, const Extents& extents) {
  const std::vector<IndexForm>& index = term.factors[0].index;
  const Shape shape = e.shape(tensor);
  if (term.sums.empty() || index.size() < 3 || index.size() > 5 || shape.size() != index.size())
    return std::nullopt;
  Box box = Box::Whole(shape);
  IndexedValue result;
  Ints kernel, strides, dilations, pads(2 * (index.size() - 2));
  bool windows = false;
  for (size_t d = 0; d < index.size(); ++d) {
    if (d < 2) {
      if (index[d].divisor != 1 || !index[d].affine.IsIterator() ||
          IsAmong(term.sums, index[d].affine.terms.begin()->first) ||
          extents[static_cast<size_t>(index[d].affine.terms.begin()->first)] != shape[d])
        return std::nullopt;
      result.dims.push_back(index[d].affine.terms.begin()->first);
      continue;
    }
    const auto dim = PoolDimOf(term, index[d], shape[d], extents);
    if (!dim.has_value()) return std::nullopt;
    windows = windows || dim->window.kernel > 1;
    kernel.push_back(dim->window.kernel);
    strides.push_back(dim->window.stride);
    dilations.push_back(dim->window.dilation);
    pads[d - 2] = dim->window.pad_begin;
    pads[d - 2 + index.size() - 2] = dim->window.pad_end;
    box.begin[d] = dim->begin;
    box.end[d] = dim->end;
    result.dims.push_back(dim->p);
  }
  if (!windows) return std::nullopt;
  const ValueId mean = e.Op("AveragePool", {e.Cut(tensor, box)},
                            {{"kernel_shape", kernel},
                             {"strides", strides},
                             {"dilations", dilations},
                             {"pads", pads},
                             {"count_include_pad", int64_t{1}}});
  const double count = static_cast<double>(NumElements(kernel));
  result.value = e.Mul(mean, e.Constant(Tensor::Scalar(e.type(mean).dtype, count)));
  return result;
}

}  // namespace mendel
