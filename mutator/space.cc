#include "mutator/space.h"

#include <algorithm>
#include <functional>

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

/// Reshape, Transpose, Reshape, without what factors of 1 make idle.
ValueId Rearranged(Emitter& e, ValueId x, const Shape& split, const Ints& perm,
                   const Shape& merged) {
  Shape short_split;
  Ints places(split.size(), -1), short_perm;
  for (size_t d = 0; d < split.size(); ++d) {
    if (split[d] == 1) continue;
    places[d] = static_cast<int64_t>(short_split.size());
    short_split.push_back(split[d]);
  }
  for (int64_t d : perm) {
    if (places[static_cast<size_t>(d)] >= 0) short_perm.push_back(places[static_cast<size_t>(d)]);
  }
  if (std::is_sorted(short_perm.begin(), short_perm.end())) return e.Reshape(x, merged);
  return e.Reshape(e.Transpose(e.Reshape(x, short_split), short_perm), merged);
}

}  // namespace

ValueId BatchToSpace(Emitter& e, ValueId x, const Ints& factors) {
  const Shape shape = e.shape(x);
  const int64_t rank = static_cast<int64_t>(factors.size());
  Shape split = {shape[0] / NumElements(factors)};
  split.insert(split.end(), factors.begin(), factors.end());
  split.insert(split.end(), shape.begin() + 1, shape.end());
  Ints perm = {0, rank + 1};
  Shape merged = {split[0], shape[1]};
  for (int64_t d = 0; d < rank; ++d) {
    perm.insert(perm.end(), {1 + d, rank + 2 + d});
    merged.push_back(factors[static_cast<size_t>(d)] * shape[static_cast<size_t>(d + 2)]);
  }
  return Rearranged(e, x, split, perm, merged);
}

ValueId SpaceToBatch(Emitter& e, ValueId x, const Ints& factors) {
  const Shape shape = e.shape(x);
  Ints perm = {0};
  for (size_t d = 0; d < factors.size(); ++d) perm.push_back(static_cast<int64_t>(2 + 2 * d));
  perm.push_back(1);
  for (size_t d = 0; d < factors.size(); ++d) perm.push_back(static_cast<int64_t>(3 + 2 * d));
  const Ints inner = Quotients(shape, factors);
  Shape merged = {shape[0] * NumElements(factors), shape[1]};
  merged.insert(merged.end(), inner.begin(), inner.end());
  return Rearranged(e, x, SplitSpace(shape, factors, inner), perm, merged);
}

ValueId JoinTiles(Emitter& e, ValueId x, const Ints& factors) {
  const Shape shape = e.shape(x);
  const int64_t rank = static_cast<int64_t>(factors.size());
  Shape split = factors;
  split.push_back(shape[0] / NumElements(factors));
  split.insert(split.end(), shape.begin() + 1, shape.end());
  Ints perm = {rank, rank + 1};
  Shape merged = {split[factors.size()], shape[1]};
  for (int64_t d = 0; d < rank; ++d) {
    perm.insert(perm.end(), {d, rank + 2 + d});
    merged.push_back(factors[static_cast<size_t>(d)] * shape[static_cast<size_t>(d + 2)]);
  }
  return Rearranged(e, x, split, perm, merged);
}

ValueId ResiduesToBatch(Emitter& e, ValueId x, const Ints& factors) {
  const Shape shape = e.shape(x);
  const Ints quotients = Quotients(shape, factors);
  Ints perm;
  for (size_t d = 0; d < factors.size(); ++d) perm.push_back(static_cast<int64_t>(3 + 2 * d));
  perm.insert(perm.end(), {0, 1});
  for (size_t d = 0; d < factors.size(); ++d) perm.push_back(static_cast<int64_t>(2 + 2 * d));
  Shape merged = {shape[0] * NumElements(factors), shape[1]};
  merged.insert(merged.end(), quotients.begin(), quotients.end());
  return Rearranged(e, x, SplitSpace(shape, quotients, factors), perm, merged);
}

ValueId BatchToResidues(Emitter& e, ValueId x, const Ints& factors) {
  const Shape shape = e.shape(x);
  const size_t rank = factors.size();
  Shape split = factors;
  split.push_back(shape[0] / NumElements(factors));
  split.insert(split.end(), shape.begin() + 1, shape.end());
  Ints perm = {static_cast<int64_t>(rank), static_cast<int64_t>(rank + 1)};
  Shape merged = {split[rank], shape[1]};
  for (size_t d = 0; d < rank; ++d) {
    perm.push_back(static_cast<int64_t>(rank + 2 + d));
    perm.push_back(static_cast<int64_t>(d));
    merged.push_back(shape[d + 2] * factors[d]);
  }
  return Rearranged(e, x, split, perm, merged);
}

namespace {

/// [N, C, a0, b0, a1, b1, ..] -> [N, C, b0, a0, b1, a1, ..].
ValueId SwapWithinSpace(Emitter& e, ValueId x, const Shape& split, const Shape& result) {
  Ints perm = {0, 1};
  for (size_t d = 2; d < split.size(); d += 2) {
    perm.push_back(static_cast<int64_t>(d + 1));
    perm.push_back(static_cast<int64_t>(d));
  }
  return Rearranged(e, x, split, perm, result);
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

ValueId SpaceToDepth(Emitter& e, ValueId x, const Ints& factors) {
  const Shape shape = e.shape(x);
  const Ints quotients = Quotients(shape, factors);
  Shape merged = {shape[0], shape[1] * NumElements(factors)};
  merged.insert(merged.end(), quotients.begin(), quotients.end());
  Ints perm = {0, 1};
  for (size_t d = 0; d < factors.size(); ++d) perm.push_back(static_cast<int64_t>(3 + 2 * d));
  for (size_t d = 0; d < factors.size(); ++d) perm.push_back(static_cast<int64_t>(2 + 2 * d));
  return Rearranged(e, x, SplitSpace(shape, quotients, factors), perm, merged);
}

ValueId Interleave(Emitter& e, const std::vector<ValueId>& phases, const Ints& factors) {
  Shape shape = e.shape(phases[0]);
  Shape one = shape;
  one.insert(one.begin(), 1);
  std::vector<ValueId> rows;
  for (ValueId phase : phases) rows.push_back(e.Reshape(phase, one));
  ValueId y = e.Concat(rows, 0);  // [s0*s1.., N, C, M0, M1..]
  Shape split = factors;
  split.insert(split.end(), shape.begin(), shape.end());
  const int64_t rank = static_cast<int64_t>(factors.size());
  Ints perm = {rank, rank + 1};
  for (int64_t d = 0; d < rank; ++d) {
    perm.insert(perm.end(), {rank + 2 + d, d});
    shape[static_cast<size_t>(d + 2)] *= factors[static_cast<size_t>(d)];
  }
  return Rearranged(e, y, split, perm, shape);
}

}  // namespace mendel
