#include "kernels/cpu/kernels/resample.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/kernels/resample_pass.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kGrain = int64_t{1} << 14;    ///< floats written that are worth a thread
constexpr int64_t kLongest = int64_t{1} << 16;  ///< floats of a row between two passes

/// Runs one pass from memory to memory.
void RunPass(const PackedPass& pass, const float* from, float* to) {
  if (pass.inner() == 1) {
    ParallelRange(pass.outer(), std::max<int64_t>(1, kGrain / pass.out()),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t row = begin; row < end; ++row)
                      pass.All(from + row * pass.from_floats(), to + row * pass.to_floats());
                  });
    return;
  }
  ParallelRange(pass.outer() * pass.out(), std::max<int64_t>(1, kGrain / pass.inner()),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    pass.Row(from + row / pass.out() * pass.from_floats(), row % pass.out(),
                             to + row * pass.inner());
                  }
                });
}

class ResampleKernel : public Kernel {
 public:
  ResampleKernel(const std::vector<ResamplePass>& passes, double extrapolation, int threads,
                 Place from, Place to)
      : outside_(static_cast<float>(extrapolation)),
        together_(LastPassesTogether(passes)),
        threads_(threads),
        from_(std::move(from)),
        to_(std::move(to)) {
    for (const ResamplePass& pass : passes) passes_.emplace_back(pass, ResampleIsaHere(), outside_);
    // Passes that write all of a tensor to scratch memory.
    const size_t whole = passes.size() - (together_ ? 2 : 1);
    for (size_t k = 0; k < whole; ++k)
      buffers_[k % 2] = std::max(buffers_[k % 2], passes[k].OutputFloats());
  }

  absl::Status Run(const Bindings& bindings) override {
    float* const scratch = reinterpret_cast<float*>(bindings.scratch);
    const float* source = bindings.At<const float>(from_);
    float* const to = bindings.At<float>(to_);
    const size_t whole = passes_.size() - (together_ ? 2 : 1);
    for (size_t k = 0; k < whole; ++k) {
      float* const target = scratch + (k % 2 == 0 ? 0 : buffers_[0]);
      RunPass(passes_[k], source, target);
      source = target;
    }
    if (together_) {
      RunTogether(source, scratch + buffers_[0] + buffers_[1], to);
    } else {
      RunPass(passes_.back(), source, to);
    }
    return absl::OkStatus();
  }

 private:
  /// `rooms`: a row of the pass before the last for each thread.
  void RunTogether(const float* from, float* rooms, float* to) const {
    const PackedPass& pass = passes_[passes_.size() - 2];
    const int64_t rows = pass.outer() * pass.out();
    const int64_t floats = pass.inner() / passes_.back().from_floats() * passes_.back().to_floats();
    const int64_t jobs =
        std::clamp<int64_t>(rows * floats / kGrain, 1, std::min<int64_t>(threads_, rows));
    ParallelRange(jobs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) {
        RunRows(from, rows * job / jobs, rows * (job + 1) / jobs, rooms + job * pass.inner(), to);
      }
    });
  }

  /// Computes output rows [row, end) of the pass before the last, numbered through all outer
  /// positions.
  void RunRows(const float* from, int64_t row, int64_t end, float* room, float* to) const {
    const PackedPass& pass = passes_[passes_.size() - 2];
    const PackedPass& last = passes_.back();
    const int64_t lines = pass.inner() / last.from_floats();
    const int64_t floats = lines * last.to_floats();
    for (int64_t count = 0; row < end; row += count) {
      const float* const source = from + row / pass.out() * pass.from_floats();
      const int64_t y = row % pass.out();
      count = 1;
      if (pass.IsOutside(y)) {
        std::fill_n(to + row * floats, floats, outside_);
      } else if (last.PicksAll()) {
        while (row + count < end && y + count < pass.out() && !pass.IsOutside(y + count)) ++count;
        for (int64_t line = 0; line < lines; ++line) {
          last.Across(pass, source + line * last.from_floats(), y, count,
                      to + row * floats + line * last.to_floats(), floats);
        }
      } else {
        const int64_t copied = pass.CopyOf(y);
        const float* const whole = copied < 0 ? room : source + copied * pass.inner();
        if (copied < 0) pass.Row(source, y, room);
        for (int64_t line = 0; line < lines; ++line) {
          last.All(whole + line * last.from_floats(), to + row * floats + line * last.to_floats());
        }
      }
    }
  }

  std::vector<PackedPass> passes_;
  float outside_;
  bool together_;
  int threads_;
  Place from_, to_;
  int64_t buffers_[2] = {0, 0};  ///< floats
};

}  // namespace

bool LastPassesTogether(const std::vector<ResamplePass>& passes) {
  if (passes.size() < 2) return false;
  const ResamplePass& last = passes.back();
  const ResamplePass& before = passes[passes.size() - 2];
  return before.inner > last.inner && before.inner <= kLongest;
}

int64_t ResampleScratchFloats(const std::vector<ResamplePass>& passes, int threads) {
  int64_t floats[2] = {0, 0};
  const bool together = LastPassesTogether(passes);
  for (size_t k = 0; k + (together ? 2 : 1) < passes.size(); ++k)
    floats[k % 2] = std::max(floats[k % 2], passes[k].OutputFloats());
  return floats[0] + floats[1] + (together ? threads * passes[passes.size() - 2].inner : 0);
}

std::unique_ptr<Kernel> MakeResampleKernel(const std::vector<ResamplePass>& passes,
                                           double extrapolation, int threads, Place from,
                                           Place to) {
  return std::make_unique<ResampleKernel>(passes, extrapolation, threads, std::move(from),
                                          std::move(to));
}

}  // namespace mendel::cpu
