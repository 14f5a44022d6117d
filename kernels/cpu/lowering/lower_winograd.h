// The tiles F(m, r) that a Conv is offered by Winograd's algorithm. The search measures which of
// them runs.
#ifndef MENDEL_KERNELS_CPU_LOWERING_LOWER_WINOGRAD_H_
#define MENDEL_KERNELS_CPU_LOWERING_LOWER_WINOGRAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/lowering/fuse.h"
#include "kernels/cpu/lowering/lowering.h"
#include "runtime/numerics.h"

namespace mendel::cpu {

/// Names of the Winograd algorithms that the numerics class offers for a Conv node. Empty where
/// the node is of another kind, or where the machine has no such kernels.
std::vector<std::string> WinogradAlgorithms(const Graph& graph, int32_t node, Numerics numerics);
/// The group's convolution by the algorithm `name`; false when it cannot be (weights that are not
/// constant).
absl::StatusOr<bool> LowerWinograd(Lowering& lowering, const Group& group, const std::string& name);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_LOWER_WINOGRAD_H_
