#include "graph/arg_extreme.h"

#include "base/status.h"

namespace mendel {
namespace {

TypesOr InferExtreme(std::span<const TensorType> inputs, const Attributes& attrs) {
  const int64_t last = attrs.Int("select_last_index");
  if (last != 0 && last != 1) return InvalidInput("select_last_index must be 0 or 1, not ", last);
  const int64_t axis = attrs.Int("axis");
  MENDEL_ASSIGN_OR_RETURN(Shape shape,
                          ReducedShape(inputs[0].shape, {axis}, attrs.Int("keepdims")));
  if (inputs[0].shape[static_cast<size_t>(axis)] == 0)
    return InvalidInput("axis ", axis, " of ", TypeString(inputs[0]), " is empty");
  return std::vector<TensorType>{{DType::kI64, std::move(shape)}};
}

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  arithmetic.CountOperands(
      static_cast<double>(node.inputs[0].shape[static_cast<size_t>(node.attrs.Int("axis"))]),
      inputs[0]);
  return Bound::Symbol();
}

Cost CostOfSearch(const NodeView& node) {
  return {static_cast<double>(NumElements(node.inputs[0])),
          static_cast<double>(ByteSize(node.inputs[0])) +
              static_cast<double>(ByteSize(node.outputs[0]))};
}

std::optional<Restriction> RestrictExtreme(const NodeView& node, const Box& out) {
  return Restriction{
      {ReducedBox(node.inputs[0].shape, {node.attrs.Int("axis")}, node.attrs.Int("keepdims"), out)},
      node.attrs};
}

OpSample Sample(Rng& rng) {
  const Shape shape = SampleShape(rng, 1, 4, 5);
  return {{{rng.Flip(0.3) ? DType::kI32 : DType::kF32, shape}},
          {{"axis", rng.Between(0, static_cast<int64_t>(shape.size()) - 1)},
           {"keepdims", rng.Between(0, 1)},
           {"select_last_index", rng.Between(0, 1)}},
          {}};
}

}  // namespace

OpDefinition ArgExtremeOp(std::string_view name) {
  OpDefinition op;
  op.name = name;
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {
      {"axis", int64_t{0}, true}, {"keepdims", int64_t{1}}, {"select_last_index", int64_t{0}}};
  op.infer = &InferExtreme;
  op.opaque = true;
  op.bound = &BoundOf;
  op.cost = &CostOfSearch;
  op.restrict = &RestrictExtreme;
  op.sample = &Sample;
  return op;
}

}  // namespace mendel
