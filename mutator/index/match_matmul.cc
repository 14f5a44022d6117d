// Products of two factors as matrix products.

#include <algorithm>

#include "mutator/index/realize.h"

namespace mendel {
namespace {

/// The classes of a product's iterators. `left` is the factor of the rows.
struct Classes {
  size_t left = 0;
  std::vector<Iterator> batch, lead, rows, columns, inner;
};

/// Avoids a transposition if the result's order is X.. W.. X.. (iterators of one factor around
/// those of the other). The leading iterators of X then become a batch over which W is broadcast.
void TakeLead(Classes& classes, const std::vector<Iterator>& free, const Factor& x) {
  size_t first = 0, second;
  while (first < free.size() && Uses(x, free[first])) ++first;
  for (second = first; second < free.size() && !Uses(x, free[second]); ++second) {
  }
  if (first == 0 || second == first || second == free.size()) return;
  classes.lead.assign(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(first));
}

std::optional<Classes> Classify(const Product& product) {
  const Factor& a = product.term.factors[0];
  const Factor& b = product.term.factors[1];
  Classes classes;
  for (const Iterator sum : product.term.sums) {
    if (!Uses(a, sum) || !Uses(b, sum)) return std::nullopt;
    classes.inner.push_back(sum);
  }
  if (classes.inner.empty()) return std::nullopt;
  std::vector<Iterator> free;
  for (const Iterator i : product.order) {
    if (Uses(a, i) && Uses(b, i)) {
      classes.batch.push_back(i);
    } else if (Uses(a, i) || Uses(b, i)) {
      free.push_back(i);
    }
  }
  if (!free.empty()) TakeLead(classes, free, Uses(a, free[0]) ? a : b);
  const size_t next = classes.lead.size();
  if (next < free.size()) classes.left = Uses(a, free[next]) ? 0 : 1;
  for (size_t k = next; k < free.size(); ++k) {
    (Uses(product.term.factors[classes.left], free[k]) ? classes.rows : classes.columns)
        .push_back(free[k]);
  }
  return classes;
}

int64_t ProductOf(const std::vector<Iterator>& iterators, const Extents& extents) {
  int64_t count = 1;
  for (const Iterator i : iterators) count *= extents[static_cast<size_t>(i)];
  return count;
}

/// Emits the operand as [batch, lead, first, second]. Leading dimensions of extent 1 are omitted if
/// the rank allows it.
ValueId MatrixOf(Emitter& e, const Product& product, size_t side, const Classes& classes,
                 bool has_lead, const std::vector<Iterator>& first,
                 const std::vector<Iterator>& second) {
  const Factor& factor = product.term.factors[side];
  std::vector<Iterator> order = classes.batch;
  if (has_lead) order.insert(order.end(), classes.lead.begin(), classes.lead.end());
  order.insert(order.end(), first.begin(), first.end());
  order.insert(order.end(), second.begin(), second.end());
  const ValueId view = EmitView(e, product.operands[side], factor.index, order, product.extents);
  Shape shape;
  if (!classes.batch.empty()) shape.push_back(ProductOf(classes.batch, product.extents));
  if (!classes.lead.empty() && (has_lead || !classes.batch.empty())) {
    shape.push_back(has_lead ? ProductOf(classes.lead, product.extents) : 1);
  }
  shape.insert(shape.end(),
               {ProductOf(first, product.extents), ProductOf(second, product.extents)});
  return ReshapeTo(e, view, shape);
}

}  // namespace

std::optional<IndexedValue> EmitMatMul(Emitter& e, const Product& product) {
  const std::optional<Classes> classes = Classify(product);
  if (!classes.has_value()) return std::nullopt;
  const bool lead_left =
      !classes->lead.empty() && Uses(product.term.factors[classes->left], classes->lead[0]);
  const bool lead_right = !classes->lead.empty() && !lead_left;
  const ValueId a =
      MatrixOf(e, product, classes->left, *classes, lead_left, classes->rows, classes->inner);
  const ValueId b = MatrixOf(e, product, 1 - classes->left, *classes, lead_right, classes->inner,
                             classes->columns);
  IndexedValue result{e.MatMul(a, b), classes->batch};
  for (const auto* part : {&classes->lead, &classes->rows, &classes->columns}) {
    result.dims.insert(result.dims.end(), part->begin(), part->end());
  }
  Shape shape;
  for (const Iterator i : result.dims) shape.push_back(product.extents[static_cast<size_t>(i)]);
  result.value = ReshapeTo(e, result.value, shape);
  return result;
}

}  // namespace mendel
