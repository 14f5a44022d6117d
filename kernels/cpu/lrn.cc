#include "kernels/cpu/lrn.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/threads.h"
#include "kernels/cpu/typed.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kStrip = 256;  ///< positions handled side by side

class LrnKernel : public Kernel {
 public:
  explicit LrnKernel(const LrnProblem& problem) : p_(problem) {}

  absl::Status Run(const Bindings& bindings) override {
    const float* from = bindings.At<float>(p_.from);
    float* to = bindings.At<float>(p_.to);
    const int64_t strips = (p_.plane + kStrip - 1) / kStrip;
    const int64_t work = std::min(p_.plane, kStrip) * p_.size;
    ParallelRange(p_.images * strips * p_.channels, GrainOf(work), [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) {
        const int64_t channel = job % p_.channels;
        const int64_t column = job / p_.channels % strips * kStrip;
        const int64_t offset = job / p_.channels / strips * p_.channels * p_.plane + column;
        RunStrip(from + offset, to + offset, channel, std::min(kStrip, p_.plane - column));
      }
    });
    return absl::OkStatus();
  }

 private:
  /// `from` and `to`: the strip in channel 0.
  void RunStrip(const float* from, float* to, int64_t channel, int64_t count) const {
    std::array<float, kStrip> squares{};
    const int64_t first = std::max<int64_t>(0, channel - (p_.size - 1) / 2);
    const int64_t last = std::min(p_.channels - 1, channel + p_.size / 2);
    for (int64_t c = first; c <= last; ++c) {
      const float* x = from + c * p_.plane;
      for (int64_t i = 0; i < count; ++i) squares[static_cast<size_t>(i)] += x[i] * x[i];
    }
    const float factor = static_cast<float>(p_.alpha / static_cast<double>(p_.size));
    const float bias = static_cast<float>(p_.bias);
    for (int64_t i = 0; i < count; ++i) squares[static_cast<size_t>(i)] = bias + factor * squares[static_cast<size_t>(i)];
    Divide(from + channel * p_.plane, squares.data(), to + channel * p_.plane, count);
    for (int64_t i = 0; i < count; ++i) {
      if (!std::isfinite(squares[static_cast<size_t>(i)])) InDouble(from + i, to + channel * p_.plane + i, channel, first, last);
    }
  }

  /// One element whose squares do not fit into a float.
  void InDouble(const float* from, float* to, int64_t channel, int64_t first, int64_t last) const {
    double squares = 0;
    for (int64_t c = first; c <= last; ++c) squares += std::pow(static_cast<double>(from[c * p_.plane]), 2);
    const double base = p_.bias + p_.alpha / static_cast<double>(p_.size) * squares;
    *to = static_cast<float>(static_cast<double>(from[channel * p_.plane]) / std::pow(base, p_.beta));
  }

  /// The usual powers need roots only.
  void Divide(const float* x, const float* base, float* y, int64_t count) const {
    if (p_.beta == 0.75) {
      for (int64_t i = 0; i < count; ++i) y[i] = x[i] / (std::sqrt(base[i]) * std::sqrt(std::sqrt(base[i])));
    } else if (p_.beta == 0.5) {
      for (int64_t i = 0; i < count; ++i) y[i] = x[i] / std::sqrt(base[i]);
    } else if (p_.beta == 1) {
      for (int64_t i = 0; i < count; ++i) y[i] = x[i] / base[i];
    } else {
      const float exponent = static_cast<float>(-p_.beta);
      for (int64_t i = 0; i < count; ++i) y[i] = x[i] * std::pow(base[i], exponent);
    }
  }

  LrnProblem p_;
};

}  // namespace

std::unique_ptr<Kernel> MakeLrnKernel(const LrnProblem& problem) { return std::make_unique<LrnKernel>(problem); }

}  // namespace mendel::cpu
