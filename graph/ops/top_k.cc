// TopK(x){k, axis, largest, sorted}: the k largest (or smallest) elements along `axis`, best first,
// and their positions (i64). Of equal elements the one with the lower position comes first; NaN
// counts as larger than every number. `sorted` = 0 leaves the order to the implementation: the
// definition sorts.

#include <algorithm>
#include <numeric>

#include "base/status.h"
#include "graph/grid.h"
#include "graph/movement.h"

namespace mendel::ops::top_k {
namespace {

template <class S>
bool IsLess(const S& a, const S& b) {
  if constexpr (std::is_same_v<S, double>) {
    return a < b || (b != b && a == a);
  } else {
    return a < b;
  }
}

struct TopKMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int output, std::span<S> out) {
    const Shape& shape = in.shape(0);
    const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
    const bool largest = node.attrs.Int("largest") != 0;
    const int64_t k = node.attrs.Int("k");
    const int64_t inner = RowMajorStrides(shape)[axis];
    const int64_t lines = NumElements(node.outputs[0]) / std::max<int64_t>(1, k);
    std::vector<S> line(static_cast<size_t>(shape[axis]));
    std::vector<int64_t> order(line.size());
    for (int64_t l = 0; l < lines; ++l) {
      const int64_t first = l / inner * inner * shape[axis] + l % inner;
      for (size_t p = 0; p < line.size(); ++p)
        line[p] = in.Flat(0, first + static_cast<int64_t>(p) * inner);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        const S& x = line[static_cast<size_t>(a)];
        const S& y = line[static_cast<size_t>(b)];
        return largest ? IsLess(y, x) : IsLess(x, y);
      });
      for (int64_t r = 0; r < k; ++r) {
        const int64_t at = order[static_cast<size_t>(r)];
        out[static_cast<size_t>(l / inner * inner * k + l % inner + r * inner)] =
            output == 0 ? line[static_cast<size_t>(at)] : in.FromInteger(at);
      }
    }
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const int64_t axis = attrs.Int("axis");
  const int64_t k = attrs.Int("k");
  MENDEL_RETURN_IF_ERROR(CheckAxis(axis, inputs[0].shape.size()));
  TensorType values = inputs[0];
  int64_t& extent = values.shape[static_cast<size_t>(axis)];
  if (k < 0 || k > extent) return InvalidInput("k = ", k, " is outside the extent ", extent);
  extent = k;
  return std::vector<TensorType>{values, {DType::kI64, values.shape}};
}

/// One oracle of the whole line.
Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  arithmetic.CountOperands(static_cast<double>(NumElements(node.inputs[0])), inputs[0]);
  return Either(Bound::Symbol(), inputs[0]);
}

/// Whole lines.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  if (out.begin[axis] != 0 || out.end[axis] != node.outputs[0].shape[axis]) return std::nullopt;
  Box box = out;
  box.end[axis] = node.inputs[0].shape[axis];
  return Restriction{{box}, node.attrs};
}

/// The same for values and positions.
std::optional<GridRestriction> RestrictGrid(const GridRequest& request) {
  const size_t axis = static_cast<size_t>(request.node.attrs.Int("axis"));
  GridRestriction result = WholeRestriction(request.node, request.output);
  const Positions whole = result.inputs[0][axis], line = result.computed[axis];
  result.computed = result.inputs[0] = request.wanted;
  result.computed[axis] = line;
  result.inputs[0][axis] = whole;
  return result;
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 1, 4, 6);
  const int64_t axis = rng.Between(0, static_cast<int64_t>(shape.size()) - 1);
  const Attributes attrs{{"k", rng.Between(1, shape[static_cast<size_t>(axis)])},
                         {"axis", axis},
                         {"largest", rng.Between(0, 1)},
                         {"sorted", int64_t{1}}};
  return {{{rng.Flip(0.7) ? DType::kF32 : DType::kI64, shape}}, attrs, {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "TopK";
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"k", int64_t{0}, true},
                   {"axis", int64_t{0}, true},
                   {"largest", int64_t{1}},
                   {"sorted", int64_t{1}}};
  op.infer = &Infer;
  op.meaning = MeaningOf<TopKMeaning>();
  op.opaque = true;
  op.bound = &BoundOf;
  op.restrict = &Restrict;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "TopK", .restrict = &RestrictGrid});

}  // namespace
}  // namespace mendel::ops::top_k
