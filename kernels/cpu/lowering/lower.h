// The lowerings turn nodes into steps. A lowering that cannot returns false and changes nothing.
#ifndef MENDEL_KERNELS_CPU_LOWERING_LOWER_H_
#define MENDEL_KERNELS_CPU_LOWERING_LOWER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/lowering/fuse.h"
#include "kernels/cpu/lowering/lowering.h"

namespace mendel::cpu {

/// Lowers one node, except the parts that groups below compute.
using LowerNode = absl::StatusOr<bool> (*)(Lowering& lowering, int32_t node);
/// The specialized lowering of an operator; null: none.
LowerNode FindLowering(std::string_view op);

/// A convolution, transposed convolution or matrix product with the operations fused to it. What
/// does not fit the library's fusion becomes a step of its own.
absl::StatusOr<bool> LowerContraction(Lowering& lowering, const Group& group);
/// Elementwise nodes, in order, as one kernel; only the last one's value is kept. f32, bool and
/// small integers.
absl::StatusOr<bool> LowerElementwise(Lowering& lowering, std::span<const int32_t> nodes);
/// True when LowerElementwise knows the operator with these types.
bool IsElementwise(const Graph& graph, Folded& folded, int32_t node);
/// Lowers by the operator's own definition: any operator, any dtype, slowly.
absl::Status LowerDefinition(Lowering& lowering, int32_t node);

/// Lowers a whole graph.
absl::StatusOr<Program> LowerGraph(const Graph& graph, const CompileOptions& options);

/// Names of algorithms other than the default for a Conv, ConvTranspose, MatMul or Loop node.
std::vector<std::string> ConvAlgorithms(const Graph& graph, int32_t node, Numerics numerics);
/// The algorithms of a Loop are those of its body. One name holds for every node that has it.
std::vector<std::string> LoopAlgorithms(const Graph& graph, int32_t node, Numerics numerics);

// lower_move.cc, lower_rearrange.cc, lower_pool.cc, lower_lp_pool.cc, lower_resize.cc,
// lower_norm.cc, lower_channel_norm.cc, lower_reduce.cc, lower_lines.cc, lower_index.cc,
// lower_loop.cc, lower_convert.cc, lower_einsum.cc, lower_transposed_conv.cc
absl::StatusOr<bool> LowerReshape(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerTranspose(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerSlice(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerSplit(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerConcat(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerPad(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerExpand(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerGather(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerDepthToSpace(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerSpaceToDepth(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerTile(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerPool(Lowering& lowering, int32_t node);

/// A pool of `input`, in its dtype, that becomes `result`. The node `pool` has the windows.
struct LibraryPool {
  std::vector<int32_t> nodes;  ///< of the step
  int32_t pool;
  ValueId input, result;
};
/// False where oneDNN counts otherwise than the definition, or has too few dimensions.
bool SuitsLibraryPool(const Graph& graph, int32_t pool);
/// The place of the result; nullopt where oneDNN has no implementation. The pool suits.
std::optional<Place> EmitLibraryPool(Lowering& lowering, const LibraryPool& what);
absl::StatusOr<bool> LowerResize(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerSoftmax(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerLayerNorm(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerReduce(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerArgExtreme(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerChannelNorm(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerCast(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerEinsum(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerPow(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerCumSum(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerGatherElements(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerGatherNd(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerHardmax(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerLoop(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerLpPool(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerLrn(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerOneHot(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerReverseSequence(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerScatterElements(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerScatterNd(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerTopK(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerTransposedConv(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerTrilu(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerTypedElementwise(Lowering& lowering, int32_t node);
absl::StatusOr<bool> LowerTypedMatMul(Lowering& lowering, int32_t node);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_LOWER_H_
