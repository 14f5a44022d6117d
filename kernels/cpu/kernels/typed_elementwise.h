// Elementwise operators on elements as they are: comparisons, logic, choices and integer
// arithmetic, with broadcasting. Fused chains of f32 are kernels of their own (elementwise.h).
#ifndef MENDEL_KERNELS_CPU_KERNELS_TYPED_ELEMENTWISE_H_
#define MENDEL_KERNELS_CPU_KERNELS_TYPED_ELEMENTWISE_H_

#include <memory>
#include <string_view>
#include <vector>

#include "graph/types.h"
#include "kernels/cpu/kernels/kernel.h"

namespace mendel::cpu {

struct TypedOperand {
  Place place;    ///< plain layout
  Shape strides;  ///< strides of `extents`, in elements; 0 where the operand is broadcast
};

struct TypedProblem {
  std::string_view op;        ///< operator; of a shift with its direction, "BitShift.LEFT"
  DType dtype = DType::kI32;  ///< of the operands that are computed with
  Shape extents;              ///< extents of the output, which is contiguous
  std::vector<TypedOperand> operands;
  Place output;
};

/// Null for an operator, or an element type of it, without a kernel.
std::unique_ptr<Kernel> MakeTypedElementwiseKernel(TypedProblem problem);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_TYPED_ELEMENTWISE_H_
