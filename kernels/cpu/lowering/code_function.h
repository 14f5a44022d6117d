// Functions of 8-bit codes: elementwise nodes between two tensors of codes, as one table of 256.
// A quantized network has long chains of them. A MaxPool may stand among them: it chooses the same
// elements before a function that does not decrease as after it.
#ifndef MENDEL_KERNELS_CPU_LOWERING_CODE_FUNCTION_H_
#define MENDEL_KERNELS_CPU_LOWERING_CODE_FUNCTION_H_

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "kernels/cpu/lowering/fuse.h"
#include "kernels/cpu/lowering/lowering.h"

namespace mendel::cpu {

/// Element k of the value is table[byte] of element k of `source`, or of what the MaxPool `pool`
/// would choose from it; both are u8 or i8.
struct CodeFunction {
  ValueId source;
  std::array<uint8_t, 256> table;
  int32_t pool = -1;  ///< none
};

/// The nodes whose values are codes that earlier codes and single numbers decide. The source is the
/// first codes from which elementwise nodes, and at most one MaxPool, lead to the node. Tables
/// contain what the tile functions compute. Nodes with an `owner` of at least 0 are taken.
std::map<int32_t, CodeFunction> FindCodeFunctions(const Graph& graph, Folded& folded,
                                                  const std::vector<int32_t>& owner);

/// Emits the steps of a group that has a function.
absl::Status LowerCodeFunction(Lowering& lowering, const Group& group);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_CODE_FUNCTION_H_
