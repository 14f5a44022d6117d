// Slice(x){starts, ends, steps}: along each dimension d the positions starts[d], starts[d] +
// steps[d], ... before ends[d]. All three lists have full rank and are normalized: 0 <= start <=
// end <= extent for positive steps; for negative ones 0 <= start < extent and -1 <= end <= start.

#include <algorithm>

#include "base/status.h"
#include "graph/fill.h"
#include "graph/grid.h"
#include "graph/movement.h"

namespace mendel::ops::slice {
namespace {

struct SliceMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const Ints& starts = node.attrs.IntList("starts");
    const Ints& steps = node.attrs.IntList("steps");
    FillByPosition(node.outputs[0].shape, out, [&](Index i) {
      std::array<int64_t, kMaxRank> source{};
      for (size_t d = 0; d < i.size(); ++d) source[d] = starts[d] + i[d] * steps[d];
      return in(0, Index(source.data(), i.size()));
    });
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Ints& starts = attrs.IntList("starts");
  const Ints& ends = attrs.IntList("ends");
  const Ints& steps = attrs.IntList("steps");
  const Shape& shape = inputs[0].shape;
  if (starts.size() != shape.size() || ends.size() != shape.size() ||
      steps.size() != shape.size()) {
    return InvalidInput("starts, ends and steps must have length ", shape.size());
  }
  TensorType type{inputs[0].dtype, {}};
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool up = steps[d] > 0;
    const bool valid = up ? 0 <= starts[d] && starts[d] <= ends[d] && ends[d] <= shape[d]
                          : steps[d] < 0 && 0 <= starts[d] && starts[d] < shape[d] &&
                                -1 <= ends[d] && ends[d] <= starts[d];
    if (!valid) {
      return InvalidInput("bad slice ", starts[d], ":", ends[d], ":", steps[d], " of extent ",
                          shape[d], " in dimension ", d);
    }
    const int64_t span = up ? ends[d] - starts[d] : starts[d] - ends[d];
    // A step beyond the span takes one element; comparing first keeps the most negative step from
    // overflowing.
    const bool one = up ? steps[d] >= span : steps[d] <= -span;
    const int64_t step = up || one ? steps[d] : -steps[d];
    type.shape.push_back(span == 0 ? 0 : (one ? 1 : (span + step - 1) / step));
  }
  return std::vector<TensorType>{type};
}

std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const Ints& starts = node.attrs.IntList("starts");
  const Ints& steps = node.attrs.IntList("steps");
  Ints from(starts.size()), to(starts.size());
  Box box = out;
  for (size_t d = 0; d < starts.size(); ++d) {
    const int64_t first = starts[d] + out.begin[d] * steps[d];
    const int64_t last = starts[d] + (out.end[d] - 1) * steps[d];
    box.begin[d] = std::min(first, last);
    box.end[d] = std::max(first, last) + 1;
    from[d] = first - box.begin[d];
    to[d] = steps[d] > 0 ? box.end[d] - box.begin[d] : -1;
  }
  Restriction restriction{{box}, node.attrs};
  restriction.attrs.Set("starts", from);
  restriction.attrs.Set("ends", to);
  return restriction;
}

std::optional<GridRestriction> RestrictGrid(const GridRequest& request) {
  const Ints& starts = request.node.attrs.IntList("starts");
  const Ints& steps = request.node.attrs.IntList("steps");
  GridRestriction result = WholeRestriction(request.node, 0);
  result.computed = request.wanted;
  result.moved = 0;
  for (size_t d = 0; d < starts.size(); ++d) {
    std::vector<int64_t> list = request.wanted[d].ToList();
    for (int64_t& at : list) at = starts[d] + at * steps[d];
    result.inputs[0][d] = Positions::List(std::move(list));
  }
  return result;
}

std::optional<AccessPattern> Access(const NodeView& node) {
  const Ints& starts = node.attrs.IntList("starts");
  const Ints& steps = node.attrs.IntList("steps");
  AccessPattern pattern;
  pattern.breaks.resize(starts.size());
  InputAccess access;
  for (size_t d = 0; d < starts.size(); ++d)
    access.dims.push_back(LinearAccess(starts.size(), d, steps[d], starts[d]));
  pattern.inputs = {access};
  return pattern;
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 0, 4, 8);
  Ints starts, ends, steps;
  for (int64_t extent : shape) {
    const int64_t low = rng.Between(0, extent - 1);
    const int64_t high = rng.Between(low, extent - 1);
    const bool up = rng.Flip(0.7);
    starts.push_back(up ? low : high);
    ends.push_back(up ? high + 1 : low - 1);
    steps.push_back((up ? 1 : -1) * (rng.Flip() ? 1 : rng.Between(1, 9)));
  }
  return {
      {{SampleAnyDType(rng), shape}}, {{"starts", starts}, {"ends", ends}, {"steps", steps}}, {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Slice";
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"starts", Ints(), true}, {"ends", Ints(), true}, {"steps", Ints(), true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<SliceMeaning>();
  op.linear_inputs = &LinearInFirst;
  op.bound = &BoundOfSelection;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  op.sign = &SignLeast;
  op.storage = StorageTypes::kAll;
  return op;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "Slice", .restrict = &RestrictGrid});

}  // namespace
}  // namespace mendel::ops::slice
