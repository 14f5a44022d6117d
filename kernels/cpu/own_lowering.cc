#include "kernels/cpu/own_lowering.h"

#include <cstring>

namespace mendel::cpu {

std::pair<Layout, Layout> OwnLayouts(Lowering& lowering, ValueId src, ValueId dst, int64_t lanes) {
  const Shape& from = lowering.shape(src);
  const Shape& to = lowering.shape(dst);
  const bool whole = from[1] % lanes == 0 && to[1] % lanes == 0;
  if (whole && !lowering.IsConcatPart(dst) && SamePlacement(lowering.Any(src).layout, ChannelsLastLayout(from), from)) {
    return {ChannelsLastLayout(from), ChannelsLastLayout(to)};
  }
  return {BlockedLayout(from, lanes), BlockedLayout(to, lanes)};
}

Place OwnVector(Lowering& lowering, const std::vector<double>& values, int64_t floats) {
  return lowering.Constant("", floats * static_cast<int64_t>(sizeof(float)), [&](std::byte* to) {
    for (size_t c = 0; c < values.size(); ++c) {
      const float value = static_cast<float>(values[c]);
      std::memcpy(to + c * sizeof(float), &value, sizeof(float));
    }
  });
}

}  // namespace mendel::cpu
