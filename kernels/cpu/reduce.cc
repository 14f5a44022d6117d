#include "kernels/cpu/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/cpu/log_sum_exp.h"
#include "kernels/cpu/reduce_loops.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kLanes = 64;  ///< results computed side by side
constexpr int64_t kRun = 256;   ///< terms added in f32

constexpr bool IsExtreme(Reducer r) { return r == Reducer::kMax || r == Reducer::kMin; }
constexpr bool InDouble(Reducer r) { return r == Reducer::kProduct || r == Reducer::kRootOfSquares || r == Reducer::kLogOfSum; }

/// What a run is gathered in.
template <Reducer R>
using RunOf = std::conditional_t<InDouble(R), double, float>;

template <Reducer R>
RunOf<R> First() {
  if constexpr (R == Reducer::kMax) return -std::numeric_limits<float>::infinity();
  if constexpr (R == Reducer::kMin) return std::numeric_limits<float>::infinity();
  return R == Reducer::kProduct ? 1 : 0;
}

template <Reducer R>
RunOf<R> Combine(RunOf<R> total, RunOf<R> x) {
  if constexpr (R == Reducer::kSumOfMagnitudes) return total + (x < 0 ? -x : x);
  if constexpr (R == Reducer::kSumOfSquares || R == Reducer::kRootOfSquares) return total + x * x;
  if constexpr (R == Reducer::kMax) return x > total || x != x ? x : total;
  if constexpr (R == Reducer::kMin) return x < total || x != x ? x : total;
  if constexpr (R == Reducer::kProduct) return total * x;
  return total + x;
}

template <Reducer R>
double Merge(double total, RunOf<R> run) {
  if constexpr (IsExtreme(R)) return static_cast<double>(Combine<R>(static_cast<float>(total), run));
  if constexpr (R == Reducer::kProduct) return total * run;
  return total + static_cast<double>(run);
}

template <Reducer R>
double Result(double total) {
  if constexpr (R == Reducer::kRootOfSquares) return std::sqrt(total);
  if constexpr (R == Reducer::kLogOfSum) return std::log(total);
  return total;
}

template <Reducer R>
class ReduceKernel : public Kernel {
 public:
  explicit ReduceKernel(ReduceProblem problem) : loops_(std::move(problem)) {}

  absl::Status Run(const Bindings& bindings) override {
    constexpr int64_t kWorthAThread = int64_t{1} << 15;
    loops_.Run<kLanes>(
        bindings, kWorthAThread, [&](const float* from, float* to, int64_t count) { RunSideBySide(from, to, count); },
        [&](const float* from) { return RunOne(from); });
    return absl::OkStatus();
  }

 private:
  float Finish(double total) const { return static_cast<float>(Result<R>(total) * loops_.p.factor); }

  void RunSideBySide(const float* from, float* to, int64_t count) const {
    std::array<double, kLanes> totals;
    totals.fill(static_cast<double>(First<R>()));
    for (size_t t = 0; t < loops_.terms.size();) {
      const size_t end = std::min(loops_.terms.size(), t + static_cast<size_t>(kRun));
      std::array<RunOf<R>, kLanes> run;
      run.fill(First<R>());
      for (; t < end; ++t) {
        const float* values = from + loops_.terms[t];
        for (int64_t i = 0; i < count; ++i) run[static_cast<size_t>(i)] = Combine<R>(run[static_cast<size_t>(i)], values[i]);
      }
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) totals[i] = Merge<R>(totals[i], run[i]);
    }
    for (int64_t i = 0; i < count; ++i) to[i * loops_.p.kept_to.back()] = Finish(totals[static_cast<size_t>(i)]);
  }

  float RunOne(const float* from) const {
    constexpr size_t kWidth = 16;
    double total = static_cast<double>(First<R>());
    for (size_t t = 0; t < loops_.terms.size();) {
      const size_t end = std::min(loops_.terms.size(), t + static_cast<size_t>(kRun) * kWidth);
      std::array<RunOf<R>, kWidth> run;
      run.fill(First<R>());
      for (; loops_.contiguous && t + kWidth <= end; t += kWidth) {
        for (size_t i = 0; i < kWidth; ++i) run[i] = Combine<R>(run[i], from[t + i]);
      }
      for (; t < end; ++t) run[t % kWidth] = Combine<R>(run[t % kWidth], from[loops_.terms[t]]);
      for (const RunOf<R> lane : run) total = Merge<R>(total, lane);
    }
    return Finish(total);
  }

  ReduceLoops loops_;
};

}  // namespace

std::unique_ptr<Kernel> MakeReduceKernel(ReduceProblem problem) {
  switch (problem.reducer) {
    case Reducer::kSum:
      return std::make_unique<ReduceKernel<Reducer::kSum>>(std::move(problem));
    case Reducer::kSumOfMagnitudes:
      return std::make_unique<ReduceKernel<Reducer::kSumOfMagnitudes>>(std::move(problem));
    case Reducer::kSumOfSquares:
      return std::make_unique<ReduceKernel<Reducer::kSumOfSquares>>(std::move(problem));
    case Reducer::kMax:
      return std::make_unique<ReduceKernel<Reducer::kMax>>(std::move(problem));
    case Reducer::kMin:
      return std::make_unique<ReduceKernel<Reducer::kMin>>(std::move(problem));
    case Reducer::kProduct:
      return std::make_unique<ReduceKernel<Reducer::kProduct>>(std::move(problem));
    case Reducer::kRootOfSquares:
      return std::make_unique<ReduceKernel<Reducer::kRootOfSquares>>(std::move(problem));
    case Reducer::kLogOfSum:
      return std::make_unique<ReduceKernel<Reducer::kLogOfSum>>(std::move(problem));
    case Reducer::kLogOfExpSum:
      return MakeLogSumExpKernel(std::move(problem));
  }
  return nullptr;
}

}  // namespace mendel::cpu
