#include "mutator/space.h"

#include <functional>
#include <numeric>

namespace mendel {
namespace {

/// Extents with every spatial dimension d split as (outer_d, inner_d).
Shape SplitSpace(const Shape& shape, const Ints& outer, const Ints& inner) {
  Shape split = {shape[0], shape[1]};
  for (size_t d = 0; d < outer.size(); ++d) {
    split.push_back(outer[d]);
    split.push_back(inner[d]);
  }
  return split;
}

Ints Quotients(const Shape& shape, const Ints& factors) {
  Ints quotients;
  for (size_t d = 0; d < factors.size(); ++d) quotients.push_back(shape[d + 2] / factors[d]);
  return quotients;
}

int64_t Product(const Ints& values) { return std::accumulate(values.begin(), values.end(), int64_t{1}, std::multiplies<>()); }

}  // namespace

ValueId StackBatch(Emitter& e, ValueId x, int64_t dim, int64_t k) {
  const Shape shape = e.shape(x);
  Shape split = shape;
  split[0] /= k;
  split.insert(split.begin() + 1, k);
  Ints perm(split.size());
  std::iota(perm.begin(), perm.end(), 0);
  perm.erase(perm.begin() + 1);
  perm.insert(perm.begin() + dim, 1);  // k stands just before the dimension that grows
  Shape merged = shape;
  merged[0] /= k;
  merged[static_cast<size_t>(dim)] *= k;
  return e.Reshape(e.Transpose(e.Reshape(x, split), perm), merged);
}

ValueId UnstackBatch(Emitter& e, ValueId x, int64_t dim, int64_t k) {
  const Shape shape = e.shape(x);
  Shape split = shape;
  split[static_cast<size_t>(dim)] /= k;
  split.insert(split.begin() + dim, k);
  Ints perm(split.size());
  std::iota(perm.begin(), perm.end(), 0);
  perm.erase(perm.begin() + dim);
  perm.insert(perm.begin() + 1, dim);
  Shape merged = shape;
  merged[0] *= k;
  merged[static_cast<size_t>(dim)] /= k;
  return e.Reshape(e.Transpose(e.Reshape(x, split), perm), merged);
}

ValueId ResiduesToBatch(Emitter& e, ValueId x, const Ints& factors) {
  const Shape shape = e.shape(x);
  const Ints quotients = Quotients(shape, factors);
  Ints perm;
  for (size_t d = 0; d < factors.size(); ++d) perm.push_back(static_cast<int64_t>(3 + 2 * d));
  perm.insert(perm.end(), {0, 1});
  for (size_t d = 0; d < factors.size(); ++d) perm.push_back(static_cast<int64_t>(2 + 2 * d));
  Shape merged = {shape[0] * Product(factors), shape[1]};
  merged.insert(merged.end(), quotients.begin(), quotients.end());
  return e.Reshape(e.Transpose(e.Reshape(x, SplitSpace(shape, quotients, factors)), perm), merged);
}

ValueId BatchToResidues(Emitter& e, ValueId x, const Ints& factors) {
  const Shape shape = e.shape(x);
  const size_t rank = factors.size();
  Shape split = factors;
  split.push_back(shape[0] / Product(factors));
  split.insert(split.end(), shape.begin() + 1, shape.end());
  Ints perm = {static_cast<int64_t>(rank), static_cast<int64_t>(rank + 1)};
  Shape merged = {split[rank], shape[1]};
  for (size_t d = 0; d < rank; ++d) {
    perm.push_back(static_cast<int64_t>(rank + 2 + d));
    perm.push_back(static_cast<int64_t>(d));
    merged.push_back(shape[d + 2] * factors[d]);
  }
  return e.Reshape(e.Transpose(e.Reshape(x, split), perm), merged);
}

namespace {

/// [N, C, a0, b0, a1, b1, ..] -> [N, C, b0, a0, b1, a1, ..].
ValueId SwapWithinSpace(Emitter& e, ValueId x, const Shape& split, const Shape& result) {
  Ints perm = {0, 1};
  for (size_t d = 2; d < split.size(); d += 2) {
    perm.push_back(static_cast<int64_t>(d + 1));
    perm.push_back(static_cast<int64_t>(d));
  }
  return e.Reshape(e.Transpose(e.Reshape(x, split), perm), result);
}

}  // namespace

ValueId ResiduesStacked(Emitter& e, ValueId x, const Ints& factors) {
  const Shape shape = e.shape(x);
  return SwapWithinSpace(e, x, SplitSpace(shape, Quotients(shape, factors), factors), shape);
}

ValueId ResiduesUnstacked(Emitter& e, ValueId x, const Ints& factors) {
  const Shape shape = e.shape(x);
  return SwapWithinSpace(e, x, SplitSpace(shape, factors, Quotients(shape, factors)), shape);
}

}  // namespace mendel
