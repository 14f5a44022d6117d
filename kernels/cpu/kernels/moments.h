// Means and sums of squared deviations, gathered run by run (lane_moments.inc) and merged (Chan,
// Golub, LeVeque 1979).
#ifndef MENDEL_KERNELS_CPU_KERNELS_MOMENTS_H_
#define MENDEL_KERNELS_CPU_KERNELS_MOMENTS_H_

namespace mendel::cpu {

/// Moments of `count` values: their mean and the sum of squared deviations from it.
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

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_MOMENTS_H_
