// Convolutions by the positions they read: the form in which phases, split kernels and sliced
// results are easily stated.
#ifndef MENDEL_MUTATOR_CONV_AT_H_
#define MENDEL_MUTATOR_CONV_AT_H_

#include <optional>
#include <string>
#include <vector>

#include "graph/emitter.h"
#include "graph/window.h"

namespace mendel {

/// One spatial dimension: output m of `outputs` reads positions m * stride + first + t * dilation,
/// zero outside the input. `first` may be negative or positive.
struct Reads {
  int64_t first = 0;
  int64_t outputs = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
};

/// The positions that a window reads.
Reads ReadsOf(const Window& window, int64_t outputs);

/// Convolution of `x` with `w` (and `bias`) that reads so; slices and pads `x` where a
/// convolution's padding cannot say it.
ValueId ConvAt(Emitter& e, ValueId x, ValueId w, std::optional<ValueId> bias,
               const std::vector<Reads>& reads, int64_t group = 1, const std::string& name = "");

/// The taps [begin, end) of `w` along spatial dimension `d`, every `step`-th.
ValueId TapsOf(Emitter& e, ValueId w, size_t d, int64_t begin, int64_t end, int64_t step = 1);

/// The smallest window that contains several (dilation 1 where there is more than one tap):
/// positions relative to the output's times the stride, a dimension each.
struct TapHull {
  Ints first, last;
  Shape Extents() const;
};
TapHull HullOf(const std::vector<std::vector<Window>>& windows);
/// `w` of the given windows as a kernel of the hull, zeros around it.
ValueId EmbedTaps(Emitter& e, ValueId w, const std::vector<Window>& windows, const TapHull& hull);

/// `w` times a per-output-channel (per-input-channel) factor of shape [O] ([C / group]).
ValueId ScaleRows(Emitter& e, ValueId w, ValueId factor);
ValueId ScaleColumns(Emitter& e, ValueId w, ValueId factor);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_CONV_AT_H_
