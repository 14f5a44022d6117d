#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "kernels/cpu/kernels/lines.h"
#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/simd/tile_math.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kSide = 256;  ///< lines handled side by side

class SoftmaxKernel : public Kernel {
 public:
  SoftmaxKernel(const Lines& lines, Place from, Place to, bool logarithm)
      : lines_(lines),
        from_(std::move(from)),
        to_(std::move(to)),
        logarithm_(logarithm),
        exp_(FindTileFunction("Exp")) {}

  absl::Status Run(const Bindings& bindings) override {
    const float* from = bindings.At<float>(from_);
    float* to = bindings.At<float>(to_);
    const int64_t strips = (lines_.inner + kSide - 1) / kSide;
    constexpr int64_t kExponential = 8;  // operations
    ParallelRange(lines_.outer * strips,
                  GrainOf(kExponential * lines_.length * std::min(lines_.inner, kSide)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t job = begin; job < end; ++job) {
                      const int64_t column = job % strips * kSide;
                      const int64_t at = job / strips * lines_.length * lines_.inner + column;
                      RunStrip(from + at, to + at, std::min(kSide, lines_.inner - column));
                    }
                  });
    return absl::OkStatus();
  }

 private:
  void RunStrip(const float* from, float* to, int64_t count) const {
    std::array<float, kSide> largest, shifted, powers, sums{};
    largest.fill(-std::numeric_limits<float>::infinity());
    for (int64_t k = 0; k < lines_.length; ++k) {
      const float* x = from + k * lines_.inner;
      for (int64_t i = 0; i < count; ++i) largest[At(i)] = Larger(largest[At(i)], x[i]);
    }
    const float* const argument = shifted.data();
    for (int64_t k = 0; k < lines_.length; ++k) {
      const float* x = from + k * lines_.inner;
      float* y = to + k * lines_.inner;
      for (int64_t i = 0; i < count; ++i) shifted[At(i)] = x[i] - largest[At(i)];
      exp_(powers.data(), &argument, count, nullptr);
      for (int64_t i = 0; i < count; ++i) sums[At(i)] += powers[At(i)];
      std::copy_n(logarithm_ ? shifted.data() : powers.data(), count, y);
    }
    for (int64_t i = 0; i < count; ++i)
      sums[At(i)] = logarithm_ ? std::log(sums[At(i)]) : 1 / sums[At(i)];
    for (int64_t k = 0; k < lines_.length; ++k) {
      float* y = to + k * lines_.inner;
      if (logarithm_) {
        for (int64_t i = 0; i < count; ++i) y[i] -= sums[At(i)];
      } else {
        for (int64_t i = 0; i < count; ++i) y[i] *= sums[At(i)];
      }
    }
  }

  static size_t At(int64_t i) { return static_cast<size_t>(i); }
  /// NaN wins.
  static float Larger(float a, float b) { return b > a || b != b ? b : a; }

  Lines lines_;
  Place from_, to_;
  bool logarithm_;
  TileFunction exp_;
};

}  // namespace

std::unique_ptr<Kernel> MakeSoftmaxKernel(const Lines& lines, Place from, Place to,
                                          bool logarithm) {
  return std::make_unique<SoftmaxKernel>(lines, std::move(from), std::move(to), logarithm);
}

}  // namespace mendel::cpu
