// Resize in the layout in which its input lies, unless the blocked dimension is one that changes.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "graph/resampling.h"
#include "kernels/cpu/kernels/resample.h"
#include "kernels/cpu/lowering/lower.h"

namespace mendel::cpu {
namespace {

/// A dense tensor: its loops, outermost first, and how it lies when some of them are longer.
struct Loops {
  std::vector<int>
      dims;  ///< logical dimension of each loop; -1: the positions in a block of channels
  Shape extents;
  Layout resized;
};

/// Row-major, in blocks of channels or channels-last; nullopt for other layouts and where the
/// extent in blocks changes.
std::optional<Loops> LoopsOf(const Layout& layout, const Shape& shape, const Shape& resized) {
  Loops loops{{}, shape, PlainLayout(resized)};
  for (size_t d = 0; d < shape.size(); ++d) loops.dims.push_back(static_cast<int>(d));
  if (IsPlain(layout, shape)) return loops;
  if (shape.size() < 3) return std::nullopt;
  if (SamePlacement(layout, ChannelsLastLayout(shape), shape)) {
    std::rotate(loops.dims.begin() + 1, loops.dims.begin() + 2, loops.dims.end());
    std::rotate(loops.extents.begin() + 1, loops.extents.begin() + 2, loops.extents.end());
    loops.resized = ChannelsLastLayout(resized);
    return loops;
  }
  if (layout.block_dim != 1 || shape[1] != resized[1]) return std::nullopt;
  if (!SamePlacement(layout, BlockedLayout(shape, layout.block), shape)) return std::nullopt;
  loops.dims.push_back(-1);
  loops.extents[1] = (shape[1] + layout.block - 1) / layout.block;
  loops.extents.push_back(layout.block);
  loops.resized = BlockedLayout(resized, layout.block);
  return loops;
}

/// Orders the passes over a dense tensor whose loops are `order`. Passes that shrink it come first,
/// those that enlarge it most last; among equal ones the outermost comes first. The last two, where
/// neither shrinks it, run outermost first: they are made together (LastPassesTogether).
std::vector<ResamplePass> MakePasses(const Loops& loops,
                                     std::map<int, std::vector<ResampleTaps>> taps) {
  std::vector<size_t> sequence;
  for (size_t k = 0; k < loops.dims.size(); ++k) {
    if (taps.count(loops.dims[k]) > 0) sequence.push_back(k);
  }
  const auto growth = [&](size_t k) {
    return static_cast<double>(taps.at(loops.dims[k]).size()) /
           static_cast<double>(loops.extents[k]);
  };
  std::sort(sequence.begin(), sequence.end(), [&](size_t a, size_t b) {
    return growth(a) != growth(b) ? growth(a) < growth(b) : a < b;
  });
  const size_t last = sequence.size();
  if (last >= 2 && growth(sequence[last - 2]) >= 1 && sequence[last - 2] > sequence[last - 1]) {
    std::swap(sequence[last - 2], sequence[last - 1]);
  }
  Shape extents = loops.extents;
  std::vector<ResamplePass> passes;
  for (const size_t k : sequence) {
    ResamplePass pass;
    for (size_t d = 0; d < extents.size(); ++d)
      (d < k ? pass.outer : d == k ? pass.in : pass.inner) *= extents[d];
    pass.taps = std::move(taps.at(loops.dims[k]));
    extents[k] = pass.out();
    passes.push_back(std::move(pass));
  }
  return passes;
}

}  // namespace

absl::StatusOr<bool> LowerResize(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const ValueId input = node.inputs[0];
  const Shape& shape = lowering.shape(input);
  const Shape& resized = node.outputs[0].shape;
  if (lowering.type(input).dtype != DType::kF32 || NumElements(resized) == 0 ||
      NumElements(shape) == 0)
    return false;
  std::map<int, std::vector<ResampleTaps>> taps;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<ResampleTaps> along = WithView(
        lowering.graph(), id, [&](const NodeView& view) { return ResampleDimension(view, d); });
    if (!IsIdentity(along, shape[d])) taps.emplace(static_cast<int>(d), std::move(along));
  }
  // A value that goes to the caller is row-major in the end. Reordering the input is cheaper than
  // reordering the output, which is often larger.
  Place from = lowering.GoesToOutput({id, 0}) ? lowering.Plain(input) : lowering.Any(input);
  std::optional<Loops> loops = LoopsOf(from.layout, shape, resized);
  // Channels in blocks are no loop of their own; the places after the last channel stay zeros.
  const bool mixes = from.layout.block_dim >= 0 && taps.count(from.layout.block_dim) > 0;
  const bool pads = IsPadded(from.layout, shape) && node.attrs.Float("extrapolation_value") != 0;
  if (!loops.has_value() || mixes || pads) {
    from = lowering.Plain(input);
    loops = LoopsOf(from.layout, shape, resized);
  }
  if (taps.empty()) {
    lowering.Alias({id, 0}, from);
    return true;
  }
  const std::vector<ResamplePass> passes = MakePasses(*loops, std::move(taps));
  const Place to = lowering.Allocate({id, 0}, loops->resized);
  const int threads = lowering.options().threads;
  const int64_t scratch =
      ResampleScratchFloats(passes, threads) * static_cast<int64_t>(sizeof(float));
  lowering.Emit(
      {id}, "resample",
      MakeResampleKernel(passes, node.attrs.Float("extrapolation_value"), threads, from, to),
      {from, to}, scratch);
  return true;
}

}  // namespace mendel::cpu
