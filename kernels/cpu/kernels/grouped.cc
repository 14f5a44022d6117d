#include "kernels/cpu/kernels/grouped.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// Rows of outputs whose weights and inputs stay in the first-level cache.
constexpr int64_t kStrip = 8;

/// Positions along the last dimension that one call of the kernel reads.
int64_t Reach(const GroupedPlan& plan) {
  return (plan.isa->positions[plan.kernel] - 1) * plan.stride[2] +
         (plan.taps[2] - 1) * plan.dilation[2] + 1;
}

/// One call's operands.
class Convolution {
 public:
  Convolution(const GroupedPlan& plan, const float* src, const float* weights,
              const WinogradEpilogue& epilogue, float* dst)
      : plan_(plan),
        src_(src),
        weights_(weights),
        epilogue_(epilogue),
        dst_(dst),
        reach_(Reach(plan)) {}

  /// Outputs of one vector of channels at (d, h), all along the last dimension. `border`: room for
  /// inputs with padding.
  void Row(int64_t image, int64_t vector, int64_t d, int64_t h, float* border) const {
    const int64_t lanes = plan_.isa->lanes;
    const float* from = src_ + image * plan_.src.n + vector * plan_.src.c;
    std::array<const float*, kMostTapRows> rows{};  // at position 0 of each row of taps
    size_t count = 0;
    for (int64_t kd = 0; kd < plan_.taps[0]; ++kd) {
      const int64_t at_d = d * plan_.stride[0] - plan_.pad[0] + kd * plan_.dilation[0];
      for (int64_t kh = 0; kh < plan_.taps[1]; ++kh, ++count) {
        const int64_t at_h = h * plan_.stride[1] - plan_.pad[1] + kh * plan_.dilation[1];
        const bool inside = at_d >= 0 && at_d < plan_.in[0] && at_h >= 0 && at_h < plan_.in[1];
        rows[count] = inside ? from + at_d * plan_.src.d[0] + at_h * plan_.src.d[1] : nullptr;
      }
    }
    GroupedRun run{};
    run.row_count = static_cast<int64_t>(count);
    run.taps = plan_.taps[2];
    run.inputs = plan_.inputs;
    run.lanes = plan_.lanes.data();
    run.weights = weights_ + vector * plan_.Taps() * plan_.inputs * lanes;
    run.bias = epilogue_.bias + vector * lanes;
    run.dst = dst_;
    run.step = plan_.dst.d[2];
    run.channels = std::min(lanes, plan_.channels - vector * lanes);
    const int64_t first =
        image * plan_.dst.n + vector * plan_.dst.c + d * plan_.dst.d[0] + h * plan_.dst.d[1];
    const int64_t positions = plan_.isa->positions[plan_.kernel];
    for (int64_t w = 0; w < plan_.out[2]; w += positions) {
      run.count = std::min(positions, plan_.out[2] - w);
      run.at = first + w * plan_.dst.d[2];
      Run(rows, w * plan_.stride[2] - plan_.pad[2], run, border);
    }
  }

 private:
  /// Outputs whose first tap reads position `x`.
  void Run(const std::array<const float*, kMostTapRows>& rows, int64_t x, GroupedRun& run,
           float* border) const {
    std::array<const float*, kMostTapRows> starts{};
    const bool inside = x >= 0 && x + reach_ <= plan_.in[2];
    for (size_t k = 0; k < static_cast<size_t>(run.row_count); ++k) {
      if (rows[k] == nullptr) continue;
      starts[k] =
          inside ? rows[k] + x * plan_.src.d[2]
                 : Border(rows[k], x, border + static_cast<int64_t>(k) * reach_ * plan_.isa->lanes);
    }
    const int64_t position = inside ? plan_.src.d[2] : plan_.isa->lanes;
    run.rows = starts.data();
    run.tap = plan_.dilation[2] * position;
    run.stride = plan_.stride[2] * position;
    plan_.isa->grouped[plan_.kernel](run, epilogue_);
  }

  /// The positions from `x` on, zeros outside.
  const float* Border(const float* row, int64_t x, float* to) const {
    const int64_t lanes = plan_.isa->lanes;
    const size_t bytes = static_cast<size_t>(lanes) * sizeof(float);
    const int64_t first = std::clamp<int64_t>(-x, 0, reach_);
    const int64_t last = std::clamp(plan_.in[2] - x, first, reach_);
    std::memset(to, 0, static_cast<size_t>(first) * bytes);
    std::memset(to + last * lanes, 0, static_cast<size_t>(reach_ - last) * bytes);
    if (plan_.src.d[2] == lanes && first < last) {
      std::memcpy(to + first * lanes, row + (x + first) * lanes,
                  static_cast<size_t>(last - first) * bytes);
      return to;
    }
    for (int64_t k = first; k < last; ++k)
      CopyVector(row + (x + k) * plan_.src.d[2], to + k * lanes);
    return to;
  }

  /// Copies a vector by a size that the compiler knows.
  void CopyVector(const float* from, float* to) const {
    if (plan_.isa->lanes == 16) {
      std::memcpy(to, from, 16 * sizeof(float));
    } else {
      std::memcpy(to, from, 8 * sizeof(float));
    }
  }

  const GroupedPlan& plan_;
  const float* src_;
  const float* weights_;
  const WinogradEpilogue& epilogue_;
  float* dst_;
  int64_t reach_;
};

}  // namespace

int64_t ComputedPositions(const DirectIsa& isa, int kernel, int64_t count) {
  const int64_t positions = isa.positions[kernel];
  return (count + positions - 1) / positions * positions;
}

int KernelForPositions(const DirectIsa& isa, int64_t count) {
  return ComputedPositions(isa, 1, count) * 10 < ComputedPositions(isa, 0, count) * 9 ? 1 : 0;
}

bool GroupsFit(int64_t inputs, int64_t lanes) {
  return inputs > 1 && inputs < lanes && lanes % inputs == 0;
}

int64_t GroupedPlan::ScratchBytes() const {
  return shares * taps[0] * taps[1] * Reach(*this) * isa->lanes *
         static_cast<int64_t>(sizeof(float));
}

void CutGrouped(GroupedPlan& plan, int threads) {
  plan.shares = std::max(1, threads);
  plan.kernel = KernelForPositions(*plan.isa, plan.out[2]);
  plan.lanes.clear();
  for (int64_t input = 0; input < plan.inputs; ++input) {
    for (int64_t lane = 0; lane < plan.isa->lanes; ++lane) {
      plan.lanes.push_back(static_cast<int32_t>(lane / plan.inputs * plan.inputs + input));
    }
  }
}

void PackGroupedWeights(const GroupedPlan& plan, const WeightView& weights,
                        const std::vector<double>& scale, float* to) {
  const int64_t lanes = plan.isa->lanes;
  const int64_t line = plan.taps[2];
  const int64_t rows = plan.taps[0] * plan.taps[1];
  const auto pack = [&](const auto* values, int64_t vector) {
    float* at = to + vector * rows * plan.inputs * line * lanes;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t input = 0; input < plan.inputs; ++input) {
        for (int64_t tap = 0; tap < line; ++tap, at += lanes) {
          for (int64_t lane = 0; lane < std::min(lanes, plan.channels - vector * lanes); ++lane) {
            const int64_t out = vector * lanes + lane;
            at[lane] =
                ScaledWeight(values[(out * plan.inputs + input) * plan.Taps() + row * line + tap],
                             FactorOf(scale, out));
          }
        }
      }
    }
  };
  weights.Visit([&](const auto* values) {
    ParallelRange(plan.Vectors(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t vector = begin; vector < end; ++vector) pack(values, vector);
    });
  });
}

void RunGrouped(const GroupedPlan& plan, const float* src, const float* weights,
                const WinogradEpilogue& epilogue, float* dst, float* scratch) {
  const Convolution convolution(plan, src, weights, epilogue, dst);
  const int64_t lines = plan.out[0] * plan.out[1];
  const int64_t strips = (lines + kStrip - 1) / kStrip;
  const int64_t vectors = plan.Vectors();
  const int64_t tasks = plan.batch * strips * vectors;
  const int64_t border = plan.ScratchBytes() / static_cast<int64_t>(sizeof(float)) / plan.shares;
  ParallelRange(plan.shares, 1, [&](int64_t share_begin, int64_t share_end) {
    for (int64_t share = share_begin; share < share_end; ++share) {
      for (int64_t task = tasks * share / plan.shares; task < tasks * (share + 1) / plan.shares;
           ++task) {
        const int64_t strip = task / vectors % strips;
        for (int64_t line = strip * kStrip; line < std::min(lines, (strip + 1) * kStrip); ++line) {
          convolution.Row(task / vectors / strips, task % vectors, line / plan.out[1],
                          line % plan.out[1], scratch + share * border);
        }
      }
    }
  });
}

}  // namespace mendel::cpu
