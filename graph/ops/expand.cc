// Expand(x){shape}: NumPy's broadcast_to. `shape` is the result's shape, into which x must
// broadcast.

#include "base/status.h"
#include "graph/grid.h"
#include "graph/movement.h"

namespace mendel::ops::expand {
namespace {

struct ExpandMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    return in.Broadcast(0, i);
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Shape& shape = attrs.IntList("shape");
  MENDEL_RETURN_IF_ERROR(CheckExtents(shape));
  if (BroadcastShapes(inputs[0].shape, shape) != shape) {
    return InvalidInput("cannot expand ", ShapeString(inputs[0].shape), " to ", ShapeString(shape));
  }
  return std::vector<TensorType>{{inputs[0].dtype, shape}};
}

std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  Restriction restriction{{BroadcastBox(node.inputs[0].shape, out)}, node.attrs};
  restriction.attrs.Set("shape", out.Extents());
  return restriction;
}

std::optional<GridRestriction> RestrictGrid(const GridRequest& request) {
  GridRestriction result = WholeRestriction(request.node, 0);
  result.computed = request.wanted;
  const Shape& shape = request.node.inputs[0].shape;
  const size_t skip = request.wanted.size() - shape.size();
  bool expands = false;
  for (size_t d = 0; d < request.wanted.size(); ++d) {
    const bool repeated = d < skip || shape[d - skip] == 1;
    expands = expands || (repeated && request.wanted[d].size() > 1);
    if (!repeated) result.inputs[0][d - skip] = request.wanted[d];
  }
  if (!expands) result.moved = 0;
  result.attrs.Set("shape", ExtentsOf(request.wanted));
  return result;
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 0, 4, 5);
  return {{{SampleAnyDType(rng), SampleBroadcastable(rng, shape)}}, {{"shape", shape}}, {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Expand";
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"shape", Ints(), true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<ExpandMeaning>();
  op.linear_inputs = &LinearInFirst;
  op.bound = &BoundOfSelection;
  op.restrict = &Restrict;
  op.access = &AccessElementwiseSum;
  op.sample = &Sample;
  op.sign = &SignLeast;
  op.storage = StorageTypes::kAll;
  return op;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "Expand", .restrict = &RestrictGrid});

}  // namespace
}  // namespace mendel::ops::expand
