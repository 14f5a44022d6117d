#include "kernels/cpu/lowering/native_lowering.h"

#include <cstring>
#include <optional>
#include <utility>

namespace mendel::cpu {
namespace {

/// Channels next to each other and positions in order, perhaps with other channels between them (a
/// part of a split).
bool HasChannelsLast(const Layout& layout, const Shape& shape) {
  if (SamePlacement(layout, ChannelsLastLayout(shape), shape)) return true;
  if (layout.block_dim >= 0 || layout.strides[1] != 1 || !IsNested(layout, shape)) return false;
  for (size_t d = 2; d < shape.size(); ++d) {
    const int64_t inner = d + 1 < shape.size() ? layout.strides[d + 1] * shape[d + 1] : shape[1];
    if (layout.strides[d] < inner) return false;
  }
  return layout.strides[0] >= layout.strides[2] * shape[2];
}

}  // namespace

std::pair<Layout, Layout> OwnLayouts(Lowering& lowering, ValueId src, ValueId dst, bool residual,
                                     int64_t lanes, bool parts) {
  const Shape& from = lowering.shape(src);
  const Shape& to = lowering.shape(dst);
  const std::optional<Layout> part = residual ? std::nullopt : lowering.LayoutWithin(dst, lanes);
  const Layout result = part.value_or(BlockedLayout(to, lanes));
  if (const std::optional<Place> within = lowering.Within(src);
      within.has_value() && within->layout.block == lanes) {
    return {within->layout, result};
  }
  const bool whole = parts || (from[1] % lanes == 0 && to[1] % lanes == 0);
  if (whole && !lowering.IsConcatPart(dst)) {
    const Layout lies = lowering.Any(src).layout;
    // A value with as many channels as lanes fits both layouts: native kernels keep to blocks.
    const bool blocks = SamePlacement(lies, BlockedLayout(from, lanes), from);
    if (!blocks && HasChannelsLast(lies, from)) return {lies, ChannelsLastLayout(to)};
  }
  return {BlockedLayout(from, lanes), result};
}

WinogradStrides OwnStrides(const Layout& layout, const Shape& shape, int64_t lanes) {
  WinogradStrides strides{};
  strides.n = layout.strides[0];
  strides.c = layout.block_dim == 1 ? layout.strides[1] : lanes * layout.strides[1];
  for (size_t d = 2; d < shape.size(); ++d) strides.d[OwnDim(shape, d - 2)] = layout.strides[d];
  return strides;
}

std::optional<NativeFused> NativeFuse(Lowering& lowering, const Group& group, int64_t channels) {
  for (size_t count = group.post_ops.size() + 1; count-- > 0;) {
    std::optional<Epilogue> epilogue =
        MakeEpilogue(lowering, group, count, channels, Kernels::kNative);
    const std::optional<NativePostOps> post_ops =
        epilogue.has_value() ? NativePostOpsOf(*epilogue) : std::nullopt;
    if (post_ops.has_value()) return NativeFused{count, std::move(*epilogue), *post_ops};
  }
  return std::nullopt;
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
