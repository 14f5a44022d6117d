// Kernels as text in a plan: what the optimizer writes, and what a reader
// refuses.
#ifndef MENDEL_RUNTIME_PLAN_KERNELS_H_
#define MENDEL_RUNTIME_PLAN_KERNELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

/// Version of the section's meaning that this program writes and reads.
inline constexpr int kPlanKernelsVersion = 1;

/// One text. Plans older than this section have none.
struct PlanKernel {
  std::string language;  ///< "cuda"
  bool channels_last = false;
  std::string file_name;
  int32_t node = -1;   ///< of the plan's graph: the Patch that it computes
  std::string mutant;  ///< that node's name
  std::string text;
};

/// Kernels that every writer of this program (kernel_text.h) makes for the corrected boxes of
/// `graph`, in both layouts. Depends on the graph only. The writers' errors.
absl::StatusOr<std::vector<PlanKernel>> WriteKernels(const Graph& graph);

/// InvalidArgument when a kernel is for a node that is no Patch, or two would be the same file.
absl::Status CheckKernels(const std::vector<PlanKernel>& kernels, const Graph& graph);

/// The section's bytes, with a SHA-256 of every text; equal kernels give equal bytes.
std::string SerializeKernels(const std::vector<PlanKernel>& kernels);

/// InvalidArgument for a text with a wrong hash (the file is named), for a file name with a folder,
/// for another version (both are reported), for bytes that cannot be decoded.
absl::StatusOr<std::vector<PlanKernel>> ParseKernels(const std::string& bytes);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_PLAN_KERNELS_H_
