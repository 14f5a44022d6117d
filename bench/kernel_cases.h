// Layers of well-known networks by which the CPU backend's native kernels are compared with the
// library's.
#ifndef MENDEL_BENCH_KERNEL_CASES_H_
#define MENDEL_BENCH_KERNEL_CASES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

struct KernelCase {
  std::string kind;  ///< what kernels of one name are distinguished by: "3x3", "depthwise 5x5
                     ///< swish", "attention"
  std::string text;  ///< networks and shapes
  std::function<absl::StatusOr<Graph>()> make;
};

/// One layer each, some with the layer before it or with what is fused to it; those of one kind
/// stand together.
std::vector<KernelCase> KernelCases();

}  // namespace mendel

#endif  // MENDEL_BENCH_KERNEL_CASES_H_
