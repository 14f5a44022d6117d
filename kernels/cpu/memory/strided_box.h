// A strided box describes a test's tensor: channels in vectors or next to each other, dense, with
// gaps, or with a stride of more than 2^31 bytes.
#ifndef MENDEL_KERNELS_CPU_MEMORY_STRIDED_BOX_H_
#define MENDEL_KERNELS_CPU_MEMORY_STRIDED_BOX_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/random.h"
#include "kernels/cpu/kernels/winograd_kernels.h"
#include "kernels/cpu/testing/guarded.h"

namespace mendel::cpu {

class StridedBox {
 public:
  StridedBox() = default;
  /// `last`: channels next to each other. Otherwise they lie in vectors of `lanes`, the last one
  /// filled up with channels of its own.
  StridedBox(bool last, int64_t batch, int64_t channels, int64_t lanes, const int64_t* extents,
             Rng& rng)
      : lanes_(lanes),
        batch_(batch),
        channels_(last ? channels : (channels + lanes - 1) / lanes * lanes) {
    std::copy_n(extents, 3, extents_);
    const bool gaps = rng.Flip();
    const auto pitch = [&](int64_t dense) {
      return gaps && rng.Flip() ? dense + rng.Between(1, 20) : dense;
    };
    strides.d[2] = pitch(last ? channels_ : lanes);
    strides.d[1] = pitch(extents[2] * strides.d[2]);
    strides.d[0] = pitch(extents[1] * strides.d[1]);
    const int64_t image = pitch(extents[0] * strides.d[0]);
    strides.c = last ? lanes : image;
    strides.n = last ? image : pitch(channels_ / lanes * image);
    if (!rng.Flip(0.05)) return;
    huge_ = true;
    int64_t* const choices[] = {&strides.d[0], &strides.d[1], &strides.d[2], &strides.n,
                                &strides.c};
    *choices[rng.Below(last ? 4 : 5)] += int64_t{1} << 29;
  }

  int64_t At(int64_t n, int64_t c, const int64_t* x) const {
    return n * strides.n + c / lanes_ * strides.c + c % lanes_ + x[0] * strides.d[0] +
           x[1] * strides.d[1] + x[2] * strides.d[2];
  }
  int64_t Size() const {
    const int64_t last[] = {extents_[0] - 1, extents_[1] - 1, extents_[2] - 1};
    return At(batch_ - 1, channels_ - 1, last) + 1;
  }

  /// Calls body(offset) for every element.
  template <class Body>
  void ForEach(const Body& body) const {
    int64_t x[3];
    for (int64_t n = 0; n < batch_; ++n) {
      for (int64_t c = 0; c < channels_; ++c) {
        for (x[0] = 0; x[0] < extents_[0]; ++x[0]) {
          for (x[1] = 0; x[1] < extents_[1]; ++x[1]) {
            for (x[2] = 0; x[2] < extents_[2]; ++x[2]) body(static_cast<size_t>(At(n, c, x)));
          }
        }
      }
    }
  }

  /// Returns NaNs everywhere. Gaps contain a different NaN.
  GuardedFloats Blank(Guard guard) const {
    GuardedFloats values(Size(), guard);
    if (!huge_) std::fill(values.begin(), values.end(), kGap);
    ForEach([&](size_t at) { values[at] = std::numeric_limits<float>::quiet_NaN(); });
    return values;
  }
  GuardedFloats Random(Rng& rng) const {
    GuardedFloats values = Blank(RandomGuard(rng));
    ForEach([&](size_t at) { values[at] = static_cast<float>(rng.Uniform(-1, 1)); });
    return values;
  }
  void Copy(const GuardedFloats& from, GuardedFloats& to) const {
    ForEach([&](size_t at) { to[at] = from[at]; });
  }

  /// True when nothing was written between the elements. Huge strides are not checked.
  bool GapsUntouched(const GuardedFloats& values) const {
    if (huge_) return true;
    std::vector<bool> element(values.size());
    ForEach([&](size_t at) { element[at] = true; });
    for (size_t i = 0; i < values.size(); ++i) {
      if (!element[i] &&
          __builtin_bit_cast(uint32_t, values[i]) != __builtin_bit_cast(uint32_t, kGap))
        return false;
    }
    return true;
  }

  WinogradStrides strides{};

 private:
  static constexpr float kGap = __builtin_bit_cast(float, 0x7fc0abcdu);

  int64_t lanes_ = 1, batch_ = 1, channels_ = 1;
  int64_t extents_[3] = {1, 1, 1};
  bool huge_ = false;
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_MEMORY_STRIDED_BOX_H_
