// Code shared by the lowerings of the native convolution kernels.
#ifndef MENDEL_KERNELS_CPU_LOWERING_NATIVE_LOWERING_H_
#define MENDEL_KERNELS_CPU_LOWERING_NATIVE_LOWERING_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cpu/lowering/contraction.h"
#include "kernels/cpu/lowering/lowering.h"
#include "kernels/cpu/lowering/native_post_ops.h"

namespace mendel::cpu {

/// Layouts of source and result. Channels-last where the source already lies so and whole vectors
/// fit (`parts`: the kernel also takes a part of a vector). Otherwise blocked, where parts of a
/// concatenation are computed in place. A `residual`, which has the result's layout, lies densely.
std::pair<Layout, Layout> OwnLayouts(Lowering& lowering, ValueId src, ValueId dst, bool residual,
                                     int64_t lanes, bool parts = false);

/// A spatial dimension's place among three; missing ones come first.
inline size_t OwnDim(const Shape& shape, size_t spatial) { return spatial + 5 - shape.size(); }
/// Strides of a channels-last or blocked layout in vectors of `lanes` channels.
WinogradStrides OwnStrides(const Layout& layout, const Shape& shape, int64_t lanes);

/// Fills in, out, taps, pad, stride and dilation of a plan for a Conv; missing spatial dimensions
/// come first and stay as they are.
template <class Plan>
void DescribeWindow(const Graph& graph, const Node& node, Plan& plan) {
  const Shape& src = graph.type(node.inputs[0]).shape;
  for (size_t d = 2; d < src.size(); ++d) {
    const size_t at = OwnDim(src, d - 2) + std::size(plan.in) - 3;
    plan.in[at] = src[d];
    plan.out[at] = node.outputs[0].shape[d];
    plan.taps[at] = graph.type(node.inputs[1]).shape[d];
    plan.pad[at] = node.attrs.IntList("pads")[d - 2];
    plan.stride[at] = node.attrs.IntList("strides")[d - 2];
    plan.dilation[at] = node.attrs.IntList("dilations")[d - 2];
  }
}

/// The first post_op-ops of a group that our kernels can apply.
struct NativeFused {
  size_t count = 0;
  Epilogue epilogue;
  NativePostOps post_ops;
};
std::optional<NativeFused> NativeFuse(Lowering& lowering, const Group& group, int64_t channels);

/// One float a channel, zeros up to `floats`.
Place OwnVector(Lowering& lowering, const std::vector<double>& values, int64_t floats);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_NATIVE_LOWERING_H_
