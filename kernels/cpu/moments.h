// Means and sums of squared deviations, gathered run by run and merged (Chan, Golub, LeVeque 1979).
#ifndef MENDEL_KERNELS_CPU_MOMENTS_H_
#define MENDEL_KERNELS_CPU_MOMENTS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/unroll.h"

namespace mendel::cpu {

/// Of `count` values: their mean and the sum of squared deviations from it.
struct Moments {
  double count = 0;
  double mean = 0;
  double squares = 0;

  void Merge(const Moments& other) {
    if (other.count == 0) return;
    const double share = other.count / (count + other.count);
    const double delta = other.mean - mean;
    mean += delta * share;
    squares += other.squares + delta * delta * count * share;
    count += other.count;
  }
};

/// Of `count` values in each of 4, 8 or 16 lanes.
template <size_t kLanes>
struct LaneMoments {
  double count = 0;
  std::array<double, kLanes> mean{};
  std::array<double, kLanes> squares{};

  /// Adds `positions` values of each lane, those of a position being contiguous and positions `step` elements apart.
  void Add(const float* x, int64_t positions, int64_t step) {
    constexpr int64_t kRun = 128;
    for (int64_t begin = 0; begin < positions; begin += kRun) AddRun(x + begin * step, std::min(kRun, positions - begin), step);
  }

  /// Lanes [begin, end) together.
  Moments Together(size_t begin, size_t end) const {
    Moments all;
    for (size_t i = begin; i < end; ++i) {
      all.mean += mean[i] / static_cast<double>(end - begin);
      all.squares += squares[i];
    }
    for (size_t i = begin; i < end; ++i) all.squares += count * (mean[i] - all.mean) * (mean[i] - all.mean);
    all.count = count * static_cast<double>(end - begin);
    return all;
  }

 private:
  /// Of arrays of floats the compiler would make scalars.
  typedef float Quad __attribute__((vector_size(16)));
  static constexpr size_t kQuads = kLanes / 4;
  static_assert(kLanes % 4 == 0);

  void AddRun(const float* x, int64_t positions, int64_t step) {
    Quad centers[kQuads] = {}, rests[kQuads] = {}, sums[kQuads] = {};
    for (int64_t p = 0; p < positions; ++p) {
      MENDEL_UNROLL
      for (size_t q = 0; q < kQuads; ++q) {
        Quad value;
        std::memcpy(&value, x + p * step + 4 * q, sizeof(value));
        centers[q] += value;
      }
    }
    for (Quad& quad : centers) quad /= static_cast<float>(positions);
    for (int64_t p = 0; p < positions; ++p) {
      MENDEL_UNROLL
      for (size_t q = 0; q < kQuads; ++q) {
        Quad value;
        std::memcpy(&value, x + p * step + 4 * q, sizeof(value));
        value -= centers[q];
        rests[q] += value;
        sums[q] += value * value;
      }
    }
    std::array<float, kLanes> center, rest, deviations;
    std::memcpy(center.data(), centers, sizeof(center));
    std::memcpy(rest.data(), rests, sizeof(rest));
    std::memcpy(deviations.data(), sums, sizeof(deviations));
    const double n = static_cast<double>(positions);
    const double share = n / (count + n);
    const double weight = count * share;
    const double one = 1 / n;
    for (size_t i = 0; i < kLanes; ++i) {  // `rest` is what rounding the center has left
      const double left = static_cast<double>(rest[i]) * one;
      const double delta = static_cast<double>(center[i]) + left - mean[i];
      mean[i] += delta * share;
      squares[i] += static_cast<double>(deviations[i]) - n * left * left + delta * delta * weight;
    }
    count += n;
  }
};

/// Of `count` contiguous values.
inline Moments MomentsOfRow(const float* x, int64_t count) {
  constexpr size_t kLanes = 16;
  constexpr int64_t kStep = kLanes;
  LaneMoments<kLanes> lanes;
  lanes.Add(x, count / kStep, kStep);
  Moments all = lanes.Together(0, kLanes);
  for (int64_t k = count / kStep * kStep; k < count; ++k) all.Merge({1, static_cast<double>(x[k]), 0});
  return all;
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_MOMENTS_H_
