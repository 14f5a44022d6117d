#include "kernels/cpu/kernels/log_sum_exp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/cpu/kernels/reduce_loops.h"
#include "kernels/cpu/simd/tile_math.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kSide = 64;  ///< results computed side by side
constexpr size_t kTile = 512;  ///< exponentials a call

/// NaN wins.
float Larger(float a, float b) { return b > a || b != b ? b : a; }

/// Returns the number to subtract from the terms: their maximum, or 0 where that would give
/// infinity minus infinity.
float Shift(float largest) { return std::isfinite(largest) ? largest : 0; }

constexpr size_t kLanes = 16;

/// take(i % kLanes, values[i]) for all.
template <class Take>
void InLanes(const float* values, size_t count, const Take& take) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) take(lane, values[i + lane]);
  }
  for (size_t lane = 0; i + lane < count; ++lane) take(lane, values[i + lane]);
}

class LogSumExpKernel : public Kernel {
 public:
  explicit LogSumExpKernel(ReduceProblem problem)
      : loops_(std::move(problem)), exp_(FindTileFunction("Exp")) {}

  absl::Status Run(const Bindings& bindings) override {
    constexpr int64_t kGrain = int64_t{1} << 11;
    loops_.Run<kSide>(
        bindings, kGrain,
        [&](const float* from, float* to, int64_t count) {
          RunSideBySide(from, to, static_cast<size_t>(count));
        },
        [&](const float* from) { return RunOne(from); });
    return absl::OkStatus();
  }

 private:
  void RunSideBySide(const float* from, float* to, size_t count) const {
    std::array<float, kSide> shifts, shifted, powers;
    std::array<double, kSide> sums{};
    shifts.fill(-std::numeric_limits<float>::infinity());
    for (int64_t term : loops_.terms) {
      for (size_t i = 0; i < count; ++i)
        shifts[i] = Larger(shifts[i], from[term + static_cast<int64_t>(i)]);
    }
    for (float& shift : shifts) shift = Shift(shift);
    const float* const argument = shifted.data();
    for (int64_t term : loops_.terms) {
      for (size_t i = 0; i < count; ++i)
        shifted[i] = from[term + static_cast<int64_t>(i)] - shifts[i];
      exp_(powers.data(), &argument, static_cast<int64_t>(count), nullptr);
      for (size_t i = 0; i < count; ++i) sums[i] += static_cast<double>(powers[i]);
    }
    for (size_t i = 0; i < count; ++i)
      to[static_cast<int64_t>(i) * loops_.p.kept_to.back()] = Finish(shifts[i], sums[i]);
  }

  /// Up to kTile terms from the t-th on, where they lie or gathered into `room`.
  const float* Terms(const float* from, size_t t, size_t count, float* room) const {
    if (loops_.contiguous) return from + t;
    for (size_t i = 0; i < count; ++i) room[i] = from[loops_.terms[t + i]];
    return room;
  }

  float RunOne(const float* from) const {
    std::array<float, kTile> room, powers;
    std::array<float, kLanes> largest;
    largest.fill(-std::numeric_limits<float>::infinity());
    for (size_t t = 0; t < loops_.terms.size(); t += kTile) {
      const size_t count = std::min(kTile, loops_.terms.size() - t);
      const float* values = Terms(from, t, count, room.data());
      InLanes(values, count,
              [&](size_t lane, float value) { largest[lane] = Larger(largest[lane], value); });
    }
    float shift = largest[0];
    for (float lane : largest) shift = Larger(shift, lane);
    shift = Shift(shift);
    std::array<double, kLanes> sums{};
    for (size_t t = 0; t < loops_.terms.size(); t += kTile) {
      const size_t count = std::min(kTile, loops_.terms.size() - t);
      const float* values = Terms(from, t, count, room.data());
      for (size_t i = 0; i < count; ++i) room[i] = values[i] - shift;
      const float* const argument = room.data();
      exp_(powers.data(), &argument, static_cast<int64_t>(count), nullptr);
      InLanes(powers.data(), count,
              [&](size_t lane, float value) { sums[lane] += static_cast<double>(value); });
    }
    double sum = 0;
    for (double lane : sums) sum += lane;
    return Finish(shift, sum);
  }

  static float Finish(float shift, double sum) {
    return static_cast<float>(static_cast<double>(shift) + std::log(sum));
  }

  ReduceLoops loops_;
  TileFunction exp_;
};

}  // namespace

std::unique_ptr<Kernel> MakeLogSumExpKernel(ReduceProblem problem) {
  return std::make_unique<LogSumExpKernel>(std::move(problem));
}

}  // namespace mendel::cpu
