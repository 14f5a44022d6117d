// MatMul of integers and doubles.

#include "kernels/cpu/kernels/typed_matmul.h"
#include "kernels/cpu/lowering/lower.h"

namespace mendel::cpu {
namespace {

/// Products of which each operand is one matrix for all, or has one for each. False for others.
bool SetBatch(const Shape& left, const Shape& right, const Shape& out, TypedMatMul& problem) {
  const auto batch = [](const Shape& shape) {
    return NumElements(Shape(shape.begin(), shape.end() - 2));
  };
  const int64_t lefts = batch(left), rights = batch(right);
  problem.batch = batch(out);
  problem.rows = left[left.size() - 2];
  problem.depth = left.back();
  problem.columns = right.back();
  if ((lefts != 1 && lefts != problem.batch) || (rights != 1 && rights != problem.batch))
    return false;
  if (rights == 1 && lefts == problem.batch) {  // one tall product
    problem.rows *= problem.batch;
    problem.batch = 1;
  }
  problem.left_step = lefts == 1 ? 0 : problem.rows * problem.depth;
  problem.right_step = rights == 1 ? 0 : problem.depth * problem.columns;
  return true;
}

}  // namespace

absl::StatusOr<bool> LowerTypedMatMul(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape &left = lowering.shape(node.inputs[0]), &right = lowering.shape(node.inputs[1]);
  TypedMatMul problem;
  problem.dtype = node.outputs[0].dtype;
  if (!SetBatch(left, right, node.outputs[0].shape, problem)) return false;
  if (MakeTypedMatMulKernel(problem) == nullptr) return false;
  problem.left = lowering.Plain(node.inputs[0]);
  problem.right = lowering.Plain(node.inputs[1]);
  problem.to = lowering.Allocate({id, 0}, PlainLayout(node.outputs[0].shape));
  lowering.Emit({id}, "matmul, typed", MakeTypedMatMulKernel(problem),
                {problem.left, problem.right, problem.to});
  return true;
}

}  // namespace mendel::cpu
