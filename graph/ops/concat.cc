// Concat(x0, x1, ...): along `axis`.

#include <algorithm>

#include "base/status.h"
#include "graph/fill.h"
#include "graph/grid.h"
#include "graph/op_helpers.h"

namespace mendel::ops::concat {
namespace {

struct ConcatMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
    FillByPosition(node.outputs[0].shape, out, [&](Index i) {
      std::array<int64_t, kMaxRank> storage{};
      std::copy(i.begin(), i.end(), storage.begin());
      int k = 0;
      while (storage[axis] >= in.shape(k)[axis]) storage[axis] -= in.shape(k++)[axis];
      return in(k, Index(storage.data(), i.size()));
    });
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  TensorType type = inputs[0];
  const int64_t axis = attrs.Int("axis");
  if (axis < 0 || axis >= static_cast<int64_t>(type.shape.size()))
    return InvalidInput("axis ", axis, " is outside the rank");
  for (const TensorType& input : inputs.subspan(1)) {
    if (input.dtype != type.dtype || input.shape.size() != type.shape.size()) {
      return InvalidInput("cannot concatenate ", TypeString(type), " and ", TypeString(input));
    }
    for (size_t d = 0; d < type.shape.size(); ++d) {
      if (d == static_cast<size_t>(axis)) {
        type.shape[d] += input.shape[d];
      } else if (type.shape[d] != input.shape[d]) {
        return InvalidInput("cannot concatenate ", TypeString(type), " and ", TypeString(input),
                            " along axis ", axis);
      }
    }
  }
  return std::vector<TensorType>{type};
}

/// Only the pieces that the box meets.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  Restriction restriction{{}, node.attrs};
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  int64_t start = 0;
  for (const TensorType& input : node.inputs) {
    const int64_t extent = input.shape[axis];
    Box box = out;
    box.begin[axis] = std::clamp<int64_t>(out.begin[axis] - start, 0, extent);
    box.end[axis] = std::clamp<int64_t>(out.end[axis] - start, 0, extent);
    restriction.inputs.push_back(box);
    start += extent;
  }
  return restriction;
}

std::optional<GridRestriction> RestrictGrid(const GridRequest& request) {
  const NodeView& node = request.node;
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  GridRestriction result = WholeRestriction(node, 0);
  result.computed = request.wanted;
  int64_t start = 0, next = 0;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    result.inputs[k] = request.wanted;
    const int64_t end = start + node.inputs[k].shape[axis];
    std::vector<int64_t> list;
    for (; next < request.wanted[axis].size() && request.wanted[axis][next] < end; ++next)
      list.push_back(request.wanted[axis][next] - start);
    result.inputs[k][axis] = Positions::List(std::move(list));
    start = end;
  }
  return result;
}

std::optional<AccessPattern> Access(const NodeView& node) {
  AccessPattern pattern;
  const size_t rank = node.outputs[0].shape.size();
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  pattern.breaks.resize(rank);
  pattern.selecting_dim = static_cast<int>(axis);
  int64_t start = 0;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    InputAccess access = BroadcastAccess(node.outputs[0].shape, rank);
    for (size_t d = 0; d < rank; ++d) access.dims[d].coefficients[d] = 1;
    access.dims[axis].offset = -start;
    pattern.inputs.push_back(access);
    if (node.inputs[k].shape[axis] == 0) continue;
    if (start > 0) pattern.breaks[axis].push_back(start);
    pattern.selected_input.push_back(static_cast<int>(k));
    start += node.inputs[k].shape[axis];
  }
  return pattern;
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 1, 4, 6);
  const int64_t axis = rng.Between(0, static_cast<int64_t>(shape.size()) - 1);
  OpSample sample{{}, {{"axis", axis}}, {}};
  for (int64_t k = rng.Between(1, 4); k > 0; --k) {
    Shape part = shape;
    part[static_cast<size_t>(axis)] = rng.Between(1, 5);
    sample.inputs.push_back({DType::kF32, part});
  }
  return sample;
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Concat";
  op.min_inputs = 1;
  op.max_inputs = kVariadic;
  op.attributes = {{"axis", int64_t{0}, true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<ConcatMeaning>();
  op.bound = &BoundOfSelection;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  op.sign = &SignLeast;
  op.storage = StorageTypes::kAll;
  return op;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "Concat", .restrict = &RestrictGrid});

}  // namespace
}  // namespace mendel::ops::concat
