#include "kernels/cpu/resample.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// A pass with its taps in one array.
struct Packed {
  explicit Packed(const ResamplePass& pass) : outer(pass.outer), in(pass.in), out(pass.out()), inner(pass.inner) {
    begin.push_back(0);
    for (const ResampleTaps& taps : pass.taps) {
      for (const ResampleTap& tap : taps) {
        position.push_back(tap.position);
        factor.push_back(static_cast<float>(tap.coefficient));
      }
      begin.push_back(position.size());
    }
  }

  int64_t outer, in, out, inner;
  std::vector<size_t> begin;  ///< of the taps of each output position, and their end
  std::vector<int64_t> position;
  std::vector<float> factor;
};

/// `count` rows of `inner` floats, weighted.
void WeightedRow(const float* from, int64_t inner, const int64_t* position, const float* factor, size_t count, float* to) {
  const float* a = from + position[0] * inner;
  if (count == 1) {
    const float f = factor[0];
    if (f == 1) {
      std::memcpy(to, a, static_cast<size_t>(inner) * sizeof(float));
      return;
    }
    for (int64_t j = 0; j < inner; ++j) to[j] = f * a[j];
    return;
  }
  const float* b = from + position[1] * inner;
  const float f = factor[0], g = factor[1];
  for (int64_t j = 0; j < inner; ++j) to[j] = f * a[j] + g * b[j];
  for (size_t k = 2; k < count; ++k) {
    const float* more = from + position[k] * inner;
    const float h = factor[k];
    for (int64_t j = 0; j < inner; ++j) to[j] += h * more[j];
  }
}

/// A row whose positions are the dimension itself.
void ResampleRow(const Packed& pass, const float* from, float outside, float* to) {
  for (int64_t x = 0; x < pass.out; ++x) {
    const size_t begin = pass.begin[static_cast<size_t>(x)], end = pass.begin[static_cast<size_t>(x) + 1];
    float sum = begin == end ? outside : pass.factor[begin] * from[pass.position[begin]];  // a negative zero stays one
    for (size_t k = begin + 1; k < end; ++k) sum += pass.factor[k] * from[pass.position[k]];
    to[x] = sum;
  }
}

void RunPass(const Packed& pass, float outside, const float* from, float* to) {
  constexpr int64_t kGrain = int64_t{1} << 14;  // floats
  if (pass.inner == 1) {
    ParallelRange(pass.outer, std::max<int64_t>(1, kGrain / pass.out), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) ResampleRow(pass, from + row * pass.in, outside, to + row * pass.out);
    });
    return;
  }
  ParallelRange(pass.outer * pass.out, std::max<int64_t>(1, kGrain / pass.inner), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const size_t y = static_cast<size_t>(row % pass.out);
      const size_t first = pass.begin[y], count = pass.begin[y + 1] - first;
      float* target = to + row * pass.inner;
      if (count == 0) {
        std::fill_n(target, pass.inner, outside);
        continue;
      }
      WeightedRow(from + row / pass.out * pass.in * pass.inner, pass.inner, &pass.position[first], &pass.factor[first], count,
                  target);
    }
  });
}

class ResampleKernel : public Kernel {
 public:
  ResampleKernel(const std::vector<ResamplePass>& passes, double extrapolation, Place from, Place to)
      : passes_(passes.begin(), passes.end()),
        outside_(static_cast<float>(extrapolation)),
        from_(std::move(from)),
        to_(std::move(to)) {
    for (size_t k = 0; k + 1 < passes.size(); k += 2) second_ = std::max(second_, passes[k].OutputFloats());
  }

  absl::Status Run(const Bindings& bindings) override {
    float* const scratch = reinterpret_cast<float*>(bindings.scratch);
    const float* source = bindings.At<const float>(from_);
    for (size_t k = 0; k < passes_.size(); ++k) {
      float* target = k + 1 == passes_.size() ? bindings.At<float>(to_) : scratch + (k % 2 == 0 ? 0 : second_);
      RunPass(passes_[k], outside_, source, target);
      source = target;
    }
    return absl::OkStatus();
  }

 private:
  std::vector<Packed> passes_;
  float outside_;
  Place from_, to_;
  int64_t second_ = 0;  ///< floats before the second buffer
};

}  // namespace

int64_t ResampleScratchFloats(const std::vector<ResamplePass>& passes) {
  int64_t floats[2] = {0, 0};
  for (size_t k = 0; k + 1 < passes.size(); ++k) floats[k % 2] = std::max(floats[k % 2], passes[k].OutputFloats());
  return floats[0] + floats[1];
}

std::unique_ptr<Kernel> MakeResampleKernel(const std::vector<ResamplePass>& passes, double extrapolation, Place from, Place to) {
  return std::make_unique<ResampleKernel>(passes, extrapolation, std::move(from), std::move(to));
}

}  // namespace mendel::cpu
