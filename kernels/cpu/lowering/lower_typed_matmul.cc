// MatMul of integers and doubles.

#include <algorithm>

#include "kernels/cpu/kernels/typed_matmul.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/lowering/small_integers.h"

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

/// The right operand is stored, and both have small integers.
bool IsSmall(Lowering& lowering, const Node& node, const TypedMatMul& problem) {
  if (problem.dtype != DType::kI32 || problem.batch != 1 ||
      !lowering.folded().IsConstant(node.inputs[1]))
    return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId value) {
    return LargestInteger(lowering.graph(), lowering.folded(), value) <= kLargestSmallInteger;
  });
}

Place Packed(Lowering& lowering, const Tensor& stored, const TypedMatMul& problem) {
  const Tensor matrix = stored.Reshaped({problem.depth, problem.columns});
  return lowering.DeferredConstant(
      PackedSmallIntegers(problem.depth, problem.columns) * static_cast<int64_t>(sizeof(int16_t)),
      [matrix](std::byte* to) { PackSmallIntegers(matrix, reinterpret_cast<int16_t*>(to)); });
}

}  // namespace

absl::StatusOr<bool> LowerTypedMatMul(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape &left = lowering.shape(node.inputs[0]), &right = lowering.shape(node.inputs[1]);
  TypedMatMul problem;
  problem.dtype = node.outputs[0].dtype;
  if (!SetBatch(left, right, node.outputs[0].shape, problem)) return false;
  if (MakeTypedMatMulKernel(problem) == nullptr) return false;
  const bool small = IsSmall(lowering, node, problem);
  problem.left = lowering.Plain(node.inputs[0]);
  problem.right = small ? Packed(lowering, lowering.folded().Rounded(node.inputs[1]), problem)
                        : lowering.Plain(node.inputs[1]);
  problem.to = lowering.Allocate({id, 0}, PlainLayout(node.outputs[0].shape));
  lowering.Emit({id}, small ? "matmul, small integers" : "matmul, typed",
                small ? MakeSmallIntegerMatMulKernel(problem) : MakeTypedMatMulKernel(problem),
                {problem.left, problem.right, problem.to});
  return true;
}

}  // namespace mendel::cpu
