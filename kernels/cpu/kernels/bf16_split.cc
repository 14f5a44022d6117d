#include "kernels/cpu/kernels/bf16_split.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

class SplitKernel : public Kernel {
 public:
  SplitKernel(const SplitPlan& plan, Place from, Place to)
      : plan_(plan), from_(std::move(from)), to_(std::move(to)) {}

  absl::Status Run(const Bindings& bindings) override {
    constexpr int64_t kGrain = 1 << 14;  // elements
    const auto* from = bindings.At<const float>(from_);
    auto* to = bindings.At<uint16_t>(to_);
    ParallelRange(plan_.images * plan_.positions, std::max<int64_t>(1, kGrain / plan_.channels),
                  [&](int64_t begin, int64_t end) { SplitRows(plan_, from, begin, end, to); });
    return absl::OkStatus();
  }

 private:
  SplitPlan plan_;
  Place from_, to_;
};

/// A number's parts, as in SplitPlan.
struct Parts {
  uint16_t first, second, low;
};

Parts Split(double x) {
  const auto rounded = static_cast<float>(x);
  if (!std::isfinite(rounded)) return {FloatToBFloat16(rounded), 0, 0};
  const uint16_t high = FloatToBFloat16(std::clamp(rounded, -kLargestBf16, kLargestBf16));
  const auto rest = static_cast<float>(x - BFloat16ToFloat(high));
  return {high, high, FloatToBFloat16(std::clamp(rest, -kLargestLow, kLargestLow))};
}

}  // namespace

Layout SplitRowsOf::Source(const Shape& shape) const {
  if (block > 1) return BlockedLayout(shape, block);
  return axis + 1 == shape.size() ? PlainLayout(shape) : ChannelsLastLayout(shape);
}

std::optional<SplitPlan> PlanSplit(const Layout& layout, const Shape& shape,
                                   const SplitRowsOf& rows) {
  const int64_t channels = shape[rows.axis];
  const int64_t positions = NumElements(shape) / channels;
  if (SamePlacement(layout, rows.Source(shape), shape)) {
    const int64_t length = rows.block > 1 ? rows.Channels(shape) * positions / shape[0] : channels;
    return SplitPlan{1, rows.block > 1 ? shape[0] : positions, length, length};
  }
  const bool gathers = rows.block == 1 && rows.axis == 1 && layout.block_dim == 1;
  if (!gathers || !SamePlacement(layout, BlockedLayout(shape, layout.block), shape))
    return std::nullopt;
  return SplitPlan{shape[0], positions / shape[0], channels, layout.block};
}

std::unique_ptr<Kernel> MakeSplitKernel(const SplitPlan& plan, const Place& from, const Place& to) {
  return std::make_unique<SplitKernel>(plan, from, to);
}

Tensor SplitWeights(const HostValue& weights, size_t axis, int64_t extent) {
  const Shape& shape = weights.type.shape;
  const auto part = static_cast<size_t>(
      NumElements(Shape(shape.begin() + static_cast<int64_t>(axis), shape.end())));
  const size_t whole = part / static_cast<size_t>(shape[axis]) * static_cast<size_t>(extent);
  TensorType type{DType::kBF16, shape};
  type.shape[axis] = 3 * extent;
  std::vector<std::byte> bytes(static_cast<size_t>(ByteSize(type)));
  const auto put = [&](size_t element, uint16_t bits) {
    std::memcpy(&bytes[element * sizeof(bits)], &bits, sizeof(bits));
  };
  for (size_t i = 0; i < weights.scalars.size(); ++i) {
    const Parts parts = Split(weights.scalars[i]);
    const size_t at = i / part * 3 * whole + i % part;
    put(at, parts.first);
    put(at + whole, parts.low);
    put(at + 2 * whole, parts.second);
  }
  return Tensor(std::move(type), std::move(bytes));
}

}  // namespace mendel::cpu
