// Random cases of the direct kernels: guarded tensors, an epilogue, and the comparison with sums in
// double.
#ifndef MENDEL_KERNELS_CPU_TESTING_DIRECT_CASE_H_
#define MENDEL_KERNELS_CPU_TESTING_DIRECT_CASE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "gtest/gtest.h"
#include "kernels/cpu/kernels/direct_kernels.h"
#include "kernels/cpu/memory/strided_box.h"
#include "kernels/cpu/testing/guarded.h"
#include "kernels/cpu/testing/test_support.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {

inline constexpr double kAllowed = 2e-6;  // of the largest output

/// Case is the common part of both kinds of cases: random tensors, an epilogue, and the comparison.
class Case {
 public:
  Case(const DirectIsa& isa, Rng& rng)
      : isa_(isa), rng_(rng), threads_(static_cast<int>(rng.Between(1, 3))) {}

 protected:
  int64_t Round(int64_t channels) const {
    return (channels + isa_.lanes - 1) / isa_.lanes * isa_.lanes;
  }
  GuardedFloats Zeros(int64_t size) { return GuardedFloats(size, RandomGuard(rng_)); }
  GuardedFloats Random(int64_t size) {
    GuardedFloats values = Zeros(size);
    for (float& value : values) value = static_cast<float>(rng_.Uniform(-1, 1));
    return values;
  }
  std::vector<double> RandomDoubles(int64_t size) {
    std::vector<double> values(static_cast<size_t>(size));
    for (double& value : values) value = rng_.Uniform(-1, 1);
    return values;
  }

  /// Chooses dimension d of a window plan: one of `taps`, a stride with probability `strided`, and
  /// up to `most` inputs beyond the necessary ones.
  template <class Plan>
  void ChooseWindow(Plan& plan, size_t d, const std::vector<int64_t>& taps, double strided,
                    int64_t most) {
    plan.taps[d] = taps[rng_.Below(taps.size())];
    plan.stride[d] = rng_.Flip(strided) ? rng_.Between(2, 3) : 1;
    plan.dilation[d] = rng_.Flip(0.2) ? 2 : 1;
    const int64_t reach = (plan.taps[d] - 1) * plan.dilation[d];
    plan.pad[d] = rng_.Between(0, reach + 1);
    const int64_t end = rng_.Between(0, reach + 1);
    const int64_t least = std::max<int64_t>(1, reach + 1 - plan.pad[d] - end);
    plan.in[d] = rng_.Between(least, least + most);
    plan.out[d] = (plan.in[d] + plan.pad[d] + end - reach - 1) / plan.stride[d] + 1;
  }
  template <class Plan>
  static std::string DescribeWindow(const Plan& plan, size_t d) {
    return Cat("; ", plan.in[d], " -> ", plan.out[d], " taps ", plan.taps[d], " pad ", plan.pad[d],
               " stride ", plan.stride[d], " dilation ", plan.dilation[d]);
  }

  /// Chooses an activation. A kernel must compute one with a `known` name itself; `call` points to
  /// another function.
  void ChooseActivation(WinogradEpilogue& epilogue) {
    using Kind = WinogradEpilogue::Activation;
    using Known = WinogradEpilogue::Known;
    constexpr Kind kKinds[] = {Kind::kNone, Kind::kRelu, Kind::kClip, Kind::kCall, Kind::kCall};
    constexpr Known kKnown[] = {Known::kSigmoid, Known::kSwish, Known::kHardSwish};
    const size_t choice = rng_.Below(5);
    epilogue.activation = kKinds[choice];
    if (epilogue.activation == Kind::kRelu) epilogue.alpha = rng_.Flip() ? 0.0f : 0.25f;
    if (epilogue.activation == Kind::kClip) epilogue.alpha = 0.5f, epilogue.beta = 6.0f;
    epilogue.call = &Square;
    epilogue.known = choice == 4 ? kKnown[rng_.Below(3)] : Known::kNone;
  }

  /// The activation by its definition.
  static double Activate(const WinogradEpilogue& epilogue, double x) {
    using Kind = WinogradEpilogue::Activation;
    const double alpha = static_cast<double>(epilogue.alpha);
    if (epilogue.activation == Kind::kRelu) return x < 0 ? x * alpha : x;
    if (epilogue.activation == Kind::kClip)
      return std::clamp(x, alpha, static_cast<double>(epilogue.beta));
    if (epilogue.activation == Kind::kNone) return x;
    switch (epilogue.known) {
      case WinogradEpilogue::Known::kNone:
        return x * x * 0.01 + 1;
      case WinogradEpilogue::Known::kSigmoid:
        return 1 / (1 + std::exp(-x));
      case WinogradEpilogue::Known::kSwish:
        return x / (1 + std::exp(-x));
      case WinogradEpilogue::Known::kHardSwish:
        return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
    }
    return x;
  }

  static void Square(const void*, float* values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) values[i] = values[i] * values[i] * 0.01f + 1;
  }

  /// Chooses the epilogue and runs `run(epilogue, dst, scratch)` on a destination as described by
  /// `box`.
  template <class Run>
  void Execute(int64_t channels, const StridedBox& box, int64_t scratch_bytes, const Run& run) {
    bias_ = Random(Round(channels));
    residual_ = box.Random(rng_);
    epilogue_ = {};
    epilogue_.bias = bias_.data();
    epilogue_.residual = rng_.Flip() ? residual_.data() : nullptr;
    epilogue_.residual_last = rng_.Flip();
    ChooseActivation(epilogue_);
    dst_ = box.Blank(RandomGuard(rng_));
    WinogradEpilogue used = epilogue_;
    if (used.residual != nullptr && rng_.Flip()) {  // in place
      box.Copy(residual_, dst_);
      used.residual = dst_.data();
    }
    GuardedFloats scratch(scratch_bytes / static_cast<int64_t>(sizeof(float)), Guard::kEnd, 64);
    std::fill(scratch.begin(), scratch.end(), std::numeric_limits<float>::quiet_NaN());
    {
      const ThreadScope scope(threads_);
      run(used, dst_.data(), scratch.data());
    }
    if (!box.GapsUntouched(dst_)) error_ = std::numeric_limits<double>::infinity();
  }

  /// Records the output at `at`, whose sum in double is `sum`; returns the expected output.
  double Check(int64_t at, int64_t channel, double sum) {
    double want = sum + static_cast<double>(bias_[static_cast<size_t>(channel)]);
    const double residual =
        epilogue_.residual == nullptr ? 0 : static_cast<double>(residual_[static_cast<size_t>(at)]);
    largest_ = std::max(largest_, std::fabs(want));
    want = epilogue_.residual_last ? Activate(epilogue_, want) + residual
                                   : Activate(epilogue_, want + residual);
    largest_ = std::max(largest_, std::fabs(want));
    CheckNumber(dst_[static_cast<size_t>(at)], want);
    return want;
  }
  /// Records a number made of outputs.
  void CheckNumber(float have, double want) {
    const double difference = std::fabs(want - static_cast<double>(have));
    error_ = std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                    : std::max(error_, difference);
  }
  void CheckZero(int64_t at) {
    if (dst_[static_cast<size_t>(at)] != 0) error_ = std::numeric_limits<double>::infinity();
  }
  double Error() const { return error_ / std::max(1.0, largest_); }

  const DirectIsa& isa_;
  Rng& rng_;
  int threads_;

 private:
  GuardedFloats bias_, residual_, dst_;
  WinogradEpilogue epilogue_{};
  double largest_ = 0, error_ = 0;
};

/// Random cases of one instruction set.
template <class OneCase>
void RunCases(const DirectIsa& isa, const char* what) {
  double largest = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    OneCase one(isa, rng);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << one.Describe());
    const double error = one.Run();
    largest = std::max(largest, error);
    ASSERT_LE(error, kAllowed);
  }
  std::cout << isa.name << " " << what << ": largest error " << largest << ", allowed " << kAllowed
            << "\n";
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_TESTING_DIRECT_CASE_H_
