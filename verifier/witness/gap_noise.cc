#include "verifier/witness/gap_noise.h"

#include <algorithm>

#include "base/status.h"
#include "graph/loop.h"
#include "graph/rewrite.h"
#include "verifier/witness/float_noise.h"

namespace mendel {
namespace {

/// Runs of noise. From so much work on one run is enough.
constexpr int kNoiseRuns = 3;
constexpr double kCostlyNoise = 1e9;
/// The time of small operators, step by step, in that of large ones with as much arithmetic.
constexpr double kLoopFactor = 10;
constexpr double kClearMargin = 128;    ///< times one run's noise: others hardly reach the gap
constexpr int64_t kLeastOfMedian = 16;  ///< elements of an output for which one run suffices
/// Runs for one element, and elements that are looked at so.
constexpr int kCloseNoiseRuns = 24;
constexpr int kNoiseLooks = 8;

void RaiseToMedian(std::vector<double>& noise) {
  if (noise.empty()) return;
  std::vector<double> sorted = noise;
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  for (double& value : noise) value = std::max(value, *middle);
}

bool GapsAreClear(const std::vector<HostValue>& values,
                  const std::vector<std::vector<double>>& noise) {
  for (size_t k = 0; k + 1 < values.size(); k += 2) {
    const int64_t at = LargestGap(values[k], values[k + 1]).element;
    const size_t flat = static_cast<size_t>(at);
    if (!(ElementDistance(values[k], values[k + 1], at) >
          kClearMargin * (noise[k][flat] + noise[k + 1][flat])))
      return false;
  }
  return true;
}

}  // namespace

bool GapNoise::IsCostly(const Graph& pairs) {
  return TotalFlops(pairs) * (HasLoop(pairs) ? kLoopFactor : 1) > kCostlyNoise;
}

absl::StatusOr<GapNoise::Noise> GapNoise::OfPairs(const Graph& pairs,
                                                  const std::vector<HostValue>& inputs,
                                                  const std::vector<HostValue>& values) {
  const bool costly = IsCostly(pairs);
  const bool once = costly && std::all_of(values.begin(), values.end(), [](const HostValue& value) {
                      return NumElements(value.type) >= kLeastOfMedian;
                    });
  MENDEL_ASSIGN_OR_RETURN(Noise noise, Runs(pairs, inputs, values, once, costly));
  if (costly) std::for_each(noise.begin(), noise.end(), &RaiseToMedian);
  return noise;
}

absl::StatusOr<GapNoise::Noise> GapNoise::Runs(const Graph& pairs,
                                               const std::vector<HostValue>& inputs,
                                               const std::vector<HostValue>& values, bool once,
                                               bool costly) {
  const double flops = 3 * TotalFlops(pairs);
  flops_ += flops;
  MENDEL_ASSIGN_OR_RETURN(Noise noise, FloatNoise(pairs, inputs, values, seed_, 1, !once));
  if (once || (costly && GapsAreClear(values, noise))) return noise;
  flops_ += (kNoiseRuns - 1) * flops;
  MENDEL_ASSIGN_OR_RETURN(const Noise more,
                          FloatNoise(pairs, inputs, values, seed_ + 1, kNoiseRuns - 1, true));
  for (size_t k = 0; k < noise.size(); ++k) {
    for (size_t i = 0; i < noise[k].size(); ++i) noise[k][i] = std::max(noise[k][i], more[k][i]);
  }
  return noise;
}

absl::StatusOr<VisibleGap> GapNoise::Visible(const WitnessQuery& query,
                                             const std::vector<HostValue>& inputs,
                                             const HostValue& f, const HostValue& g,
                                             std::vector<double>& noise_f,
                                             std::vector<double>& noise_g, bool costly) {
  for (int look = 0; look < kNoiseLooks; ++look) {
    const VisibleGap visible = LargestVisibleGap(f, g, noise_f, noise_g);
    if (costly || visible.gap.score == 0) return visible;
    MENDEL_ASSIGN_OR_RETURN(const auto closer, OfElement(query, inputs, visible.gap.element));
    double& of_f = noise_f[static_cast<size_t>(visible.gap.element)];
    double& of_g = noise_g[static_cast<size_t>(visible.gap.element)];
    of_f = std::max(of_f, closer.first);
    of_g = std::max(of_g, closer.second);
    if (IsVisible(ElementDistance(f, g, visible.gap.element), of_f, of_g)) return visible;
  }
  return VisibleGap{};
}

/// The element whose gap exceeds the noise of a few runs most is one whose noise they happen to
/// miss: here many runs count.
absl::StatusOr<std::pair<double, double>> GapNoise::OfElement(const WitnessQuery& query,
                                                              const std::vector<HostValue>& inputs,
                                                              int64_t flat) {
  const Shape element = IndexAt(query.box, flat);
  MENDEL_ASSIGN_OR_RETURN(const Graph pair,
                          RestrictPair(joint_, {{query.output, ElementBox(element)}}));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> values, Evaluate(pair, inputs));
  flops_ += 3 * kCloseNoiseRuns * TotalFlops(pair);
  MENDEL_ASSIGN_OR_RETURN(const auto noise,
                          FloatNoise(pair, inputs, values, seed_ + 1, kCloseNoiseRuns, true));
  return std::pair(noise[0][0], noise[1][0]);
}

}  // namespace mendel
