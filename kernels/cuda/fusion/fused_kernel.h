// The kernel of one fusion group.
#ifndef MENDEL_KERNELS_CUDA_FUSION_FUSED_KERNEL_H_
#define MENDEL_KERNELS_CUDA_FUSION_FUSED_KERNEL_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "kernels/cuda/emit/kernel_text.h"
#include "kernels/cuda/fusion/grouping.h"
#include "kernels/cuda/fusion/kernel_code.h"

namespace mendel::cuda {

struct FusedKernel {
  std::string name;  ///< name of the entry, in C linkage: a hash of the text
  std::string text;  ///< needs PreambleText() before it
  LaunchShape launch;
  std::vector<KernelOperand>
      operands;   ///< what its pointers refer to; one more follows, to the result
  int lanes = 1;  ///< elements a thread computes, by vector access where more than one
  /// Products that a block of a tiled kernel computes, padding included.
  double block_products = 0;
  /// The way to walk over the elements: also "rows", "transposition".
  std::string_view kind = "elements";
};

/// Pointers must be aligned to 16 bytes. Unimplemented names the node when the kernel would take
/// more pointers than a launch may.
absl::StatusOr<FusedKernel> WriteKernel(const Graph& graph, const FusionGroup& group);

/// Statements that compute the elements of a group's result, one or a few side by
/// side a thread. They name their pointers p0, p1, ... and y, and refer to the
/// group.
struct ElementsCode {
  KernelCode code;
  int64_t blocks = 0;
  int lanes = 1;
};
/// The code of a group without a row operator; by vectors where that helps. `threads` of a block: 0
/// is replaced by as many as suit the group. `block` is the expression of the block's number, from
/// 0. Elements of the boxes `spared` are not written.
ElementsCode WriteElements(const Graph& graph, const FusionGroup& group, int& threads,
                           std::string_view block, const std::vector<Box>& spared = {});

/// The expression of `element` as `value` stores it.
std::string Stored(const Graph& graph, ValueId value, const std::string& element);

/// Declarations of a pointer that is read and of one to a result.
std::string PointerParameter(const KernelOperand& operand, const std::string& name);
std::string ResultParameter(const Graph& graph, ValueId result, const std::string& name);

/// A launch's parameters are 4 KiB.
inline constexpr size_t kMaxPointers = 500;
/// Returns Unimplemented with the node if a launch cannot take `count` pointers.
absl::Status CheckPointers(const Graph& graph, int32_t node, size_t count);

/// The type of indices in a kernel of these nodes: "int", or "long long" where a tensor has too
/// many elements for it.
std::string IndexTypeOf(const Graph& graph, const std::set<int32_t>& nodes);
/// Text, name and launch around the statements of `code`, which it takes. `written`: the
/// declarations of the parameters that follow those of the operands. `fewest`: blocks that a
/// multiprocessor should hold at once, so that the compiler may use all registers that leaves; 0:
/// it decides, and may spill for more blocks.
FusedKernel FinishedKernel(KernelCode& code, const std::string& written, int64_t blocks,
                           int threads, unsigned shared, int fewest = 0);
/// The same for a kernel that writes `result`, as y.
FusedKernel FinishedKernel(const Graph& graph, ValueId result, KernelCode& code, int64_t blocks,
                           int threads, unsigned shared);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FUSION_FUSED_KERNEL_H_
