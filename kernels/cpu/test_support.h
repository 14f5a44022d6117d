// Comparison of compiled graphs with their evaluation in double, and the instruction sets to test, for this folder's tests.
#ifndef MENDEL_KERNELS_CPU_TEST_SUPPORT_H_
#define MENDEL_KERNELS_CPU_TEST_SUPPORT_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "graph/evaluate.h"
#include "gtest/gtest.h"
#include "kernels/cpu/low_precision.h"
#include "runtime/backend.h"

/// In a test that needs it.
#define MENDEL_SKIP_WITHOUT_BF16() \
  if (!mendel::cpu::MultipliesBf16()) GTEST_SKIP() << "this machine does not multiply in bf16, or oneDNN is limited to less"

namespace mendel::cpu {

/// Compiles, runs twice into fresh, deliberately dirty and barely aligned buffers, and expects both runs to agree bit by bit and
/// to match Evaluate: floats to `tolerance` of the largest output, input or `scale`, integers exactly. Returns the steps' kernels.
std::vector<std::string> ExpectMatches(const Graph& graph, const std::vector<HostValue>& inputs, const CompileOptions& options,
                                       double tolerance = 1e-5, double scale = 0);

using SampleRanges = std::vector<std::pair<int, std::pair<double, double>>>;
using ChangeInputs = std::function<void(std::vector<HostValue>&)>;
/// One node whose operands are all inputs and pass a Neg and back where they are f32, so that they lie in the arena and the kernel
/// may work in place, by one thread and by three. Inputs are drawn (`ranges` as in SampledNode), then changed. Expects
/// ExpectMatches, and that no step is a definition.
void CheckOperator(const std::string& name, const std::vector<TensorType>& inputs, const Attributes& attrs,
                   const SampleRanges& ranges = {}, const ChangeInputs& change = nullptr, double tolerance = 1e-5);

/// Both forms of a kernel, as far as this machine runs them (whatever oneDNN is allowed).
template <class Isa>
std::vector<const Isa*> RunnableIsas(const Isa& (*avx2)(), const Isa& (*avx512)()) {
  std::vector<const Isa*> isas;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) isas.push_back(&avx2());
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    isas.push_back(&avx512());
  }
  return isas;
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_TEST_SUPPORT_H_
