// Common parts of MaxPool, AveragePool and LpPool: x[N, C, D...] with the attributes kernel_shape,
// strides, dilations, pads and ceil_mode (0 or 1: output extents round up, see
// Window::CeilOutputExtent).
#ifndef MENDEL_GRAPH_POOLING_H_
#define MENDEL_GRAPH_POOLING_H_

#include <string_view>
#include <vector>

#include "graph/fill.h"
#include "graph/op_helpers.h"
#include "graph/window.h"

namespace mendel {

/// The windows of one channel: output position o reads the elements offsets[start[o]] ..
/// offsets[start[o + 1] - 1] of the channel's plane. Padding is left out.
struct PoolGeometry {
  int64_t plane = 1;           ///< input elements a channel
  std::vector<int64_t> start;  ///< one more than there are output positions
  std::vector<int64_t> offsets;
  std::vector<int64_t> padded_size;  ///< an output position: taps on the input or the explicit
                                     ///< padding, not beyond it

  explicit PoolGeometry(const NodeView& node);
  int64_t positions() const { return static_cast<int64_t>(padded_size.size()); }
};

/// out[n, c, o] = pool(elements in the window, o). `pool` takes a span of them. It may call
/// oracles, but not divide.
template <class S, class Pool>
void FillPool(const Reader<S>& in, const PoolGeometry& geometry, std::span<S> out,
              const Pool& pool) {
  const int64_t positions = geometry.positions();
  const int64_t taps = static_cast<int64_t>(geometry.offsets.size());
  ForRanges<S>(in.shape(0)[0] * in.shape(0)[1], taps, [&](int64_t begin, int64_t end) {
    std::vector<S> values;
    for (int64_t channel = begin; channel < end; ++channel) {
      for (int64_t o = 0; o < positions; ++o) {
        const size_t first = static_cast<size_t>(geometry.start[static_cast<size_t>(o)]);
        values.resize(static_cast<size_t>(geometry.start[static_cast<size_t>(o) + 1]) - first);
        for (size_t k = 0; k < values.size(); ++k) {
          values[k] = in.Flat(0, channel * geometry.plane + geometry.offsets[first + k]);
        }
        out[static_cast<size_t>(channel * positions + o)] =
            pool(std::span<const S>(values), static_cast<size_t>(o));
      }
    }
  });
}

std::vector<Window> PoolWindows(const NodeView& node);
/// Taps of a whole window.
double PoolTaps(const NodeView& node);

/// Any dtype but bool.
TypesOr InferPool(std::span<const TensorType> inputs, const Attributes& attrs);
TypesOr InferPoolFloat(std::span<const TensorType> inputs, const Attributes& attrs);
/// Any box. The restricted node has ceil_mode 0 and explicit pads. Where these would exceed the
/// node's own, the result with `count_padding` is nullopt, since the operator then distinguishes
/// padding from the space beyond it.
std::optional<Restriction> RestrictPool(const NodeView& node, const Box& out, bool count_padding);
/// One term per tap; the caller sets the breaks.
AccessPattern PoolAccess(const NodeView& node, AccessPattern::Combine combine);
OpSample SamplePool(Rng& rng);
/// Name, attributes, inference of floats, cost, restriction and oracle access.
OpDefinition PoolOp(std::string_view name);

}  // namespace mendel

#endif  // MENDEL_GRAPH_POOLING_H_
