// ReduceLogSumExp: max + log(sum exp(x - max)).
#ifndef MENDEL_KERNELS_CPU_KERNELS_LOG_SUM_EXP_H_
#define MENDEL_KERNELS_CPU_KERNELS_LOG_SUM_EXP_H_

#include <memory>

#include "kernels/cpu/kernels/kernel.h"
#include "kernels/cpu/kernels/reduce.h"

namespace mendel::cpu {

/// `problem.reducer` and `problem.factor` are not looked at. Exponentials in f32, their sum in
/// double.
std::unique_ptr<Kernel> MakeLogSumExpKernel(ReduceProblem problem);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_LOG_SUM_EXP_H_
