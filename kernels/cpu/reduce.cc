#include "kernels/cpu/reduce.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kLanes = 64;  ///< results computed side by side
constexpr int64_t kRun = 256;   ///< terms added in f32

template <Reducer R>
float First() {
  if constexpr (R == Reducer::kMax) return -std::numeric_limits<float>::infinity();
  if constexpr (R == Reducer::kMin) return std::numeric_limits<float>::infinity();
  return 0;
}

template <Reducer R>
float Combine(float total, float x) {
  if constexpr (R == Reducer::kSum) return total + x;
  if constexpr (R == Reducer::kSumOfMagnitudes) return total + (x < 0 ? -x : x);
  if constexpr (R == Reducer::kSumOfSquares) return total + x * x;
  if constexpr (R == Reducer::kMax) return x > total || x != x ? x : total;
  if constexpr (R == Reducer::kMin) return x < total || x != x ? x : total;
}

constexpr bool IsSum(Reducer r) { return r != Reducer::kMax && r != Reducer::kMin; }

template <Reducer R>
double Merge(double total, float run) {
  if constexpr (IsSum(R)) return total + static_cast<double>(run);
  return static_cast<double>(Combine<R>(static_cast<float>(total), run));
}

int64_t Offset(const Shape& extents, const Shape& strides, int64_t flat) {
  int64_t offset = 0;
  for (size_t d = extents.size(); d-- > 0; flat /= extents[d]) offset += flat % extents[d] * strides[d];
  return offset;
}

template <Reducer R>
class ReduceKernel : public Kernel {
 public:
  explicit ReduceKernel(ReduceProblem problem) : p_(std::move(problem)) {
    terms_.resize(static_cast<size_t>(NumElements(p_.reduced)));
    for (size_t t = 0; t < terms_.size(); ++t) terms_[t] = Offset(p_.reduced, p_.reduced_from, static_cast<int64_t>(t));
    contiguous_ = !terms_.empty();
    for (size_t t = 0; t < terms_.size(); ++t) contiguous_ = contiguous_ && terms_[t] == static_cast<int64_t>(t);
    if (p_.kept.empty()) {
      p_.kept = {1};
      p_.kept_from = p_.kept_to = {0};
    }
  }

  absl::Status Run(const Bindings& bindings) override {
    const float* from = bindings.At<float>(p_.from);
    float* to = bindings.At<float>(p_.to);
    const int64_t row = p_.kept.back();
    const int64_t rows = NumElements(p_.kept) / row;
    const int64_t strips = (row + kLanes - 1) / kLanes;
    const int64_t work = std::max<int64_t>(1, static_cast<int64_t>(terms_.size()) * std::min(row, kLanes));
    ParallelRange(rows * strips, std::max<int64_t>(1, (1 << 15) / work), [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) {
        const int64_t column = job % strips * kLanes;
        const int64_t first = job / strips * row + column;
        RunStrip(from + Offset(p_.kept, p_.kept_from, first), to + Offset(p_.kept, p_.kept_to, first),
                 std::min(kLanes, row - column));
      }
    });
    return absl::OkStatus();
  }

 private:
  void RunStrip(const float* from, float* to, int64_t count) const {
    const int64_t step_from = p_.kept_from.back();
    const int64_t step_to = p_.kept_to.back();
    if (step_from == 1 && count >= 4) return RunSideBySide(from, to, count);
    for (int64_t i = 0; i < count; ++i) to[i * step_to] = RunOne(from + i * step_from);
  }

  float Finish(double total) const { return static_cast<float>(total * p_.factor); }

  void RunSideBySide(const float* from, float* to, int64_t count) const {
    std::array<double, kLanes> totals;
    totals.fill(static_cast<double>(First<R>()));
    for (size_t t = 0; t < terms_.size();) {
      const size_t end = std::min(terms_.size(), t + static_cast<size_t>(kRun));
      std::array<float, kLanes> run;
      run.fill(First<R>());
      for (; t < end; ++t) {
        const float* values = from + terms_[t];
        for (int64_t i = 0; i < count; ++i) run[static_cast<size_t>(i)] = Combine<R>(run[static_cast<size_t>(i)], values[i]);
      }
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) totals[i] = Merge<R>(totals[i], run[i]);
    }
    for (int64_t i = 0; i < count; ++i) to[i * p_.kept_to.back()] = Finish(totals[static_cast<size_t>(i)]);
  }

  float RunOne(const float* from) const {
    constexpr size_t kWidth = 16;
    double total = static_cast<double>(First<R>());
    for (size_t t = 0; t < terms_.size();) {
      const size_t end = std::min(terms_.size(), t + static_cast<size_t>(kRun) * kWidth);
      std::array<float, kWidth> run;
      run.fill(First<R>());
      for (; contiguous_ && t + kWidth <= end; t += kWidth) {
        for (size_t i = 0; i < kWidth; ++i) run[i] = Combine<R>(run[i], from[t + i]);
      }
      for (; t < end; ++t) run[t % kWidth] = Combine<R>(run[t % kWidth], from[terms_[t]]);
      for (float lane : run) total = Merge<R>(total, lane);
    }
    return Finish(total);
  }

  ReduceProblem p_;
  std::vector<int64_t> terms_;
  bool contiguous_ = false;
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
  }
  return nullptr;
}

}  // namespace mendel::cpu
