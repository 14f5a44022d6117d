#include "mutator/conv_at.h"

#include <algorithm>

namespace mendel {

Reads ReadsOf(const Window& window, int64_t outputs) {
  return {-window.pad_begin, outputs, window.stride, window.dilation};
}

ValueId ConvAt(Emitter& e, ValueId x, ValueId w, std::optional<ValueId> bias,
               const std::vector<Reads>& reads, int64_t group, const std::string& name) {
  const size_t rank = reads.size();
  const Shape kernel = e.shape(w);
  Ints strides, dilations, pads(2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    const Reads& read = reads[d];
    const int64_t dim = static_cast<int64_t>(d + 2);
    const int64_t extent = e.shape(x)[d + 2];
    const int64_t end =
        (read.outputs - 1) * read.stride + read.first + read.dilation * (kernel[d + 2] - 1) + 1;
    const int64_t before = std::max<int64_t>(0, -read.first);
    const int64_t behind = std::max<int64_t>(0, end - extent);
    const int64_t from = std::max<int64_t>(0, read.first);
    const int64_t to = std::min(extent, end);
    const int64_t most = read.dilation * (kernel[d + 2] - 1);
    if (from < to) {
      // Padding wider than the window's reach would make windows of padding only, which libraries
      // may not take.
      x = e.PadZero(e.Slice(x, dim, from, to), dim, std::max<int64_t>(0, before - most),
                    std::max<int64_t>(0, behind - most));
      pads[d] = std::min(before, most);
      pads[rank + d] = std::min(behind, most);
    } else {  // nothing but padding is read
      x = e.Slice(e.PadZero(x, dim, before, behind), dim, read.first + before, end + before);
    }
    strides.push_back(read.stride);
    dilations.push_back(read.dilation);
  }
  std::vector<ValueId> inputs = {x, w};
  if (bias.has_value()) inputs.push_back(*bias);
  return e.Op("Conv", inputs,
              {{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", group}},
              name);
}

ValueId TapsOf(Emitter& e, ValueId w, size_t d, int64_t begin, int64_t end, int64_t step) {
  return e.Slice(w, static_cast<int64_t>(d + 2), begin, end, step);
}

Shape TapHull::Extents() const {
  Shape extents;
  for (size_t d = 0; d < first.size(); ++d) extents.push_back(last[d] - first[d] + 1);
  return extents;
}

TapHull HullOf(const std::vector<std::vector<Window>>& windows) {
  TapHull hull;
  for (const std::vector<Window>& each : windows) {
    const bool fresh = hull.first.empty();
    hull.first.resize(each.size());
    hull.last.resize(each.size());
    for (size_t d = 0; d < each.size(); ++d) {
      const int64_t first = -each[d].pad_begin, last = first + each[d].kernel - 1;
      hull.first[d] = fresh ? first : std::min(hull.first[d], first);
      hull.last[d] = fresh ? last : std::max(hull.last[d], last);
    }
  }
  return hull;
}

ValueId EmbedTaps(Emitter& e, ValueId w, const std::vector<Window>& windows, const TapHull& hull) {
  const Shape extents = hull.Extents();
  for (size_t d = 0; d < windows.size(); ++d) {
    const int64_t before = -windows[d].pad_begin - hull.first[d];
    w = e.PadZero(w, static_cast<int64_t>(d + 2), before, extents[d] - windows[d].kernel - before);
  }
  return w;
}

ValueId ScaleRows(Emitter& e, ValueId w, ValueId factor) {
  Shape shape(e.shape(w).size(), 1);
  shape[0] = e.shape(w)[0];
  return e.Mul(w, e.Reshape(factor, shape));
}

ValueId ScaleColumns(Emitter& e, ValueId w, ValueId factor) {
  Shape shape(e.shape(w).size(), 1);
  shape[1] = e.shape(w)[1];
  return e.Mul(w, e.Reshape(factor, shape));
}

}  // namespace mendel
