// Comparison of compiled graphs with their evaluation in double, for this folder's tests.
#ifndef MENDEL_KERNELS_CPU_TEST_SUPPORT_H_
#define MENDEL_KERNELS_CPU_TEST_SUPPORT_H_

#include <string>
#include <vector>

#include "graph/evaluate.h"
#include "runtime/backend.h"

namespace mendel::cpu {

/// Compiles, runs twice into fresh, deliberately dirty and barely aligned buffers, and expects both runs to agree bit by bit and
/// to match Evaluate: floats to `tolerance` of the largest output or input, integers exactly. Returns the steps' kernels.
std::vector<std::string> ExpectMatches(const Graph& graph, const std::vector<HostValue>& inputs, const CompileOptions& options,
                                       double tolerance = 1e-5);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_TEST_SUPPORT_H_
