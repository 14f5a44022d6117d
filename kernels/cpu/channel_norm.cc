#include "kernels/cpu/channel_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/cpu/moments.h"
#include "kernels/cpu/threads.h"
#include "kernels/cpu/typed.h"

namespace mendel::cpu {
namespace {

/// y = (x - center) * factor + shift, for the channels of one image.
struct Factors {
  float* center;
  float* factor;
  float* shift;
};

/// `kLanes` 0: row-major.
template <size_t kLanes>
class ChannelNormKernel : public Kernel {
 public:
  explicit ChannelNormKernel(ChannelNormProblem problem) : p_(std::move(problem)), g_(p_.geometry) {
    piece_ = std::max<int64_t>(p_.group, kLanes);
  }

  absl::Status Run(const Bindings& bindings) override {
    const float* from = bindings.At<float>(p_.from);
    float* to = bindings.At<float>(p_.to);
    const int64_t pieces = g_.channels / piece_;
    ParallelRange(g_.images * pieces, GrainOf(piece_ * g_.plane), [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) {
        const int64_t image = job / pieces;
        const int64_t first = job % pieces * piece_;
        const int64_t base = image * g_.channels * g_.plane;
        float* room = reinterpret_cast<float*>(bindings.scratch) + 3 * image * g_.channels;
        const Factors factors{room, room + g_.channels, room + 2 * g_.channels};
        if (p_.mean.has_value()) {
          UseGiven(bindings, factors, first);
        } else {
          Measure(bindings, from + base, factors, first);
        }
        Apply(from + base, to + base, factors, first);
      }
    });
    return absl::OkStatus();
  }

 private:
  void Set(const Bindings& bindings, const Factors& factors, int64_t channel, double mean, double variance) const {
    const double factor = static_cast<double>(bindings.At<float>(p_.scale)[channel]) / std::sqrt(variance + p_.epsilon);
    const float center = static_cast<float>(mean);
    factors.center[channel] = center;
    factors.factor[channel] = static_cast<float>(factor);
    const double rest = static_cast<double>(center) - mean;  // 0 of an infinite factor, or of infinities, is no number
    const double bias = static_cast<double>(bindings.At<float>(p_.bias)[channel]);
    factors.shift[channel] = static_cast<float>(std::isfinite(factor) && std::isfinite(rest) ? bias + rest * factor : bias);
  }

  void UseGiven(const Bindings& bindings, const Factors& factors, int64_t first) const {
    const float* means = bindings.At<float>(*p_.mean);
    const float* variances = bindings.At<float>(*p_.variance);
    for (int64_t c = first; c < first + piece_; ++c) {
      Set(bindings, factors, c, static_cast<double>(means[c]), static_cast<double>(variances[c]));
    }
  }

  void SetGroup(const Bindings& bindings, const float* image, const Factors& factors, int64_t first, Moments moments) const {
    // Sums of numbers above 1e36, or of squares of such above 1e18, do not fit into a float.
    if (!std::isfinite(moments.mean) || !std::isfinite(moments.squares)) moments = InDouble(image, first);
    for (int64_t c = first; c < first + p_.group; ++c) Set(bindings, factors, c, moments.mean, moments.squares / moments.count);
  }

  /// Of the group that begins with this channel, every sum in double.
  Moments InDouble(const float* image, int64_t first) const {
    const auto sum = [&](const auto& term) {
      double total = 0;
      for (int64_t c = first; c < first + p_.group; ++c) {
        constexpr int64_t kWidth = std::max<int64_t>(1, kLanes);
        const float* x = image + (kLanes == 0 ? c * g_.plane : c / kWidth * g_.strip_step + c % kWidth);
        for (int64_t k = 0; k < g_.plane; ++k) total += term(static_cast<double>(x[k * (kLanes == 0 ? 1 : g_.position_step)]));
      }
      return total;
    };
    Moments moments{static_cast<double>(p_.group * g_.plane), 0, 0};
    moments.mean = sum([](double x) { return x; }) / moments.count;
    moments.squares = sum([&](double x) { return (x - moments.mean) * (x - moments.mean); });
    return moments;
  }

  void Measure(const Bindings& bindings, const float* image, const Factors& factors, int64_t first) const {
    if constexpr (kLanes == 0) {
      SetGroup(bindings, image, factors, first, MomentsOfRow(image + first * g_.plane, p_.group * g_.plane));
    } else {
      constexpr int64_t kWidth = kLanes;
      Moments group;
      for (int64_t c = first; c < first + piece_; c += kWidth) {
        LaneMoments<kLanes> lanes;
        lanes.Add(image + c / kWidth * g_.strip_step, g_.plane, g_.position_step);
        const int64_t part = std::min(p_.group, kWidth);  // of a group, side by side
        for (int64_t i = 0; i < kWidth; i += part) {
          group.Merge(lanes.Together(static_cast<size_t>(i), static_cast<size_t>(i + part)));
          const int64_t next = c + i + part;
          if (next % p_.group != 0) continue;
          SetGroup(bindings, image, factors, next - p_.group, group);
          group = {};
        }
      }
    }
  }

  void Apply(const float* image, float* to, const Factors& factors, int64_t first) const {
    if constexpr (kLanes == 0) {
      for (int64_t c = first; c < first + piece_; ++c) {
        const float center = factors.center[c], factor = factors.factor[c], shift = factors.shift[c];
        const float* x = image + c * g_.plane;
        float* y = to + c * g_.plane;
        for (int64_t k = 0; k < g_.plane; ++k) y[k] = (x[k] - center) * factor + shift;
      }
    } else {
      for (int64_t c = first; c < first + piece_; c += kLanes) ApplyStrip(image, to, factors, c);
    }
  }

  void ApplyStrip(const float* image, float* to, const Factors& factors, int64_t channel) const {
    std::array<float, kLanes> center, factor, shift;
    std::copy_n(factors.center + channel, kLanes, center.begin());
    std::copy_n(factors.factor + channel, kLanes, factor.begin());
    std::copy_n(factors.shift + channel, kLanes, shift.begin());
    const int64_t offset = channel / static_cast<int64_t>(kLanes) * g_.strip_step;
    for (int64_t k = 0; k < g_.plane; ++k) {
      const float* x = image + offset + k * g_.position_step;
      float* y = to + offset + k * g_.position_step;
      for (size_t i = 0; i < kLanes; ++i) y[i] = (x[i] - center[i]) * factor[i] + shift[i];
    }
  }

  ChannelNormProblem p_;
  ChannelGeometry g_;
  int64_t piece_;  ///< channels a job: whole groups and whole strips
};

}  // namespace

std::unique_ptr<Kernel> MakeChannelNormKernel(ChannelNormProblem problem) {
  if (problem.geometry.lanes == 4) return std::make_unique<ChannelNormKernel<4>>(std::move(problem));
  if (problem.geometry.lanes == 8) return std::make_unique<ChannelNormKernel<8>>(std::move(problem));
  if (problem.geometry.lanes == 16) return std::make_unique<ChannelNormKernel<16>>(std::move(problem));
  return std::make_unique<ChannelNormKernel<0>>(std::move(problem));
}

int64_t ChannelNormScratch(const ChannelGeometry& geometry) {
  return 3 * geometry.images * geometry.channels * static_cast<int64_t>(sizeof(float));
}

}  // namespace mendel::cpu
