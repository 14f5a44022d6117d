// Comparisons, logic, choices and integer arithmetic that no fused chain computes.

#include <utility>

#include "kernels/cpu/kernels/typed_elementwise.h"
#include "kernels/cpu/lowering/lower.h"

namespace mendel::cpu {
namespace {

/// Strides of a plain operand along the output's dimensions; 0 where it is broadcast.
Shape BroadcastStrides(const Shape& operand, const Shape& output) {
  Shape strides(output.size(), 0);
  int64_t stride = 1;
  for (size_t d = operand.size(); d-- > 0; stride *= operand[d]) {
    if (operand[d] != 1) strides[output.size() - operand.size() + d] = stride;
  }
  return strides;
}

}  // namespace

absl::StatusOr<bool> LowerTypedElementwise(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape& output = node.outputs[0].shape;
  TypedProblem problem;
  problem.op = node.op->name;
  if (problem.op == "BitShift")
    problem.op = node.attrs.Str("direction") == "LEFT" ? "BitShift.LEFT" : "BitShift.RIGHT";
  problem.dtype = lowering.type(node.inputs.back()).dtype;
  problem.extents = output;
  std::vector<Place> touched;
  for (const ValueId input : node.inputs) {
    problem.operands.push_back({{}, BroadcastStrides(lowering.shape(input), output)});
  }
  if (MakeTypedElementwiseKernel(problem) == nullptr) return false;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    problem.operands[k].place = lowering.Plain(node.inputs[k]);
    touched.push_back(problem.operands[k].place);
  }
  problem.output = lowering.Allocate({id, 0}, PlainLayout(output));
  touched.push_back(problem.output);
  lowering.Emit({id}, "elementwise, typed", MakeTypedElementwiseKernel(std::move(problem)),
                touched);
  lowering.MarkElementwise();
  return true;
}

}  // namespace mendel::cpu
