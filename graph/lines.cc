#include "graph/lines.h"

#include "base/status.h"
#include "graph/whole_access.h"

namespace mendel {
namespace {

TypesOr InferLines(std::span<const TensorType> inputs, const Attributes& attrs) {
  MENDEL_RETURN_IF_ERROR(CheckLineAxis(inputs, attrs));
  return InferSameFloat(inputs, attrs);
}

std::optional<Restriction> RestrictLines(const NodeView& node, const Box& out) {
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  if (out.begin[axis] != 0 || out.end[axis] != node.inputs[0].shape[axis]) return std::nullopt;
  return Restriction{{out}, node.attrs};
}

/// A function of the whole line: positions along the axis stand on their own.
std::optional<AccessPattern> AccessLines(const NodeView& node) {
  return WholeAlong(node, static_cast<size_t>(node.attrs.Int("axis")),
                    static_cast<size_t>(node.attrs.Int("axis")) + 1);
}

Cost CostOfLines(const NodeView& node) {
  return {4.0 * static_cast<double>(NumElements(node.outputs[0])),
          2.0 * static_cast<double>(ByteSize(node.outputs[0]))};
}

}  // namespace

double LineLength(const NodeView& node) {
  return static_cast<double>(node.inputs[0].shape[static_cast<size_t>(node.attrs.Int("axis"))]);
}

absl::Status CheckLineAxis(std::span<const TensorType> inputs, const Attributes& attrs) {
  const int64_t axis = attrs.Int("axis");
  if (axis >= 0 && axis < static_cast<int64_t>(inputs[0].shape.size())) return absl::OkStatus();
  return InvalidInput("axis ", axis, " is outside the rank of ", TypeString(inputs[0]));
}

OpDefinition LineOp(std::string_view name) {
  OpDefinition op;
  op.name = name;
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"axis", int64_t{0}, true}};
  op.infer = &InferLines;
  op.cost = &CostOfLines;
  op.restrict = &RestrictLines;
  op.access = &AccessLines;
  op.sample = &SampleLines;
  return op;
}

OpSample SampleLines(Rng& rng) {
  const Shape shape = SampleShape(rng, 1, 4, 6);
  return {{{DType::kF32, shape}},
          {{"axis", rng.Between(0, static_cast<int64_t>(shape.size()) - 1)}},
          {}};
}

}  // namespace mendel
