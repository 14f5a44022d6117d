#include "kernels/cpu/attention.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kLine = 16;
constexpr int64_t kLargestBlock = 96;
constexpr int64_t kWidest = 64;  ///< floats of a panel

int64_t RoundUp(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

int64_t HeadOffset(const AttentionPlan& plan, const AttentionStrides& strides, int64_t head) {
  int64_t offset = 0;
  for (size_t d = plan.heads.size(); d-- > 0; head /= plan.heads[d]) offset += head % plan.heads[d] * strides.heads[d];
  return offset;
}

/// A matrix in panels of columns, [panel][row][column], as the product kernel reads its weights. Columns that do not exist become
/// zeros.
void Pack(const AttentionPlan& plan, const float* from, const AttentionStrides& strides, int64_t rows, int64_t columns, float* to) {
  const int64_t lanes = plan.isa->lanes;
  const int64_t panel = plan.isa->panel_vectors * lanes;
  for (int64_t begin = 0; begin < columns; begin += panel) {
    const int64_t width = std::min(panel, RoundUp(columns - begin, lanes));
    const int64_t exist = std::min(width, columns - begin);
    for (int64_t r0 = 0; r0 < rows; r0 += kLine) {
      const int64_t r1 = std::min(rows, r0 + kLine);
      if (strides.column == 1) {
        for (int64_t r = r0; r < r1; ++r) std::copy_n(from + r * strides.row + begin, exist, to + r * width);
      } else {
        for (int64_t c = 0; c < exist; ++c) {
          const float* column = from + (begin + c) * strides.column;
          for (int64_t r = r0; r < r1; ++r) to[r * width + c] = column[r * strides.row];
        }
      }
      for (int64_t r = r0; r < r1 && exist < width; ++r) std::fill(to + r * width + exist, to + (r + 1) * width, 0.0f);
    }
    to += rows * width;
  }
}

/// dst = src * packed, `count` rows.
struct SmallProduct {
  const AttentionPlan& plan;
  const float* src;
  int64_t src_row;
  int64_t depth;
  const float* packed;
  float* dst;
  int64_t dst_row;
  int64_t columns;
  bool padded;  ///< the last vector has room

  void Run(int64_t count) const {
    alignas(64) static constexpr float kNoBias[kWidest] = {};
    std::array<int64_t, kLargestBlock> src_at, dst_at;
    const int64_t lanes = plan.isa->lanes;
    const int64_t panel = plan.isa->panel_vectors * lanes;
    PointwiseBlock b{};
    b.src = src;
    b.src_at = src_at.data();
    b.src_c = b.dst_c = lanes;
    b.depth = depth;
    b.bias = kNoBias;
    b.dst = dst;
    b.dst_at = dst_at.data();
    b.count = count;
    b.padded = padded;
    b.weights = packed;
    for (int64_t r = 0; r < count; ++r) src_at[static_cast<size_t>(r)] = r * src_row;
    for (int64_t begin = 0; begin < columns; begin += panel) {
      b.channels = std::min(panel, columns - begin);
      b.vectors = (b.channels + lanes - 1) / lanes;
      for (int64_t r = 0; r < count; ++r) dst_at[static_cast<size_t>(r)] = r * dst_row + begin;
      plan.isa->pointwise(b, WinogradEpilogue{});
      b.weights += depth * b.vectors * lanes;
    }
  }
};

/// Queries [begin, end) of a head whose K and V are packed.
void RunBlock(const AttentionPlan& plan, const AttentionOperands& operands, int64_t head, int64_t begin, int64_t end,
              const float* keys, const float* values, float* scores) {
  const float* q = operands.q + HeadOffset(plan, plan.q, head) + begin * plan.q.row;
  float* out = operands.out + HeadOffset(plan, plan.out, head) + begin * plan.out.row;
  SmallProduct{plan, q, plan.q.row, plan.depth, keys, scores, plan.row, plan.keys, true}.Run(end - begin);
  std::array<float, kLargestBlock> factors;
  const SoftmaxProblem softmax{plan.keys, plan.scale};
  for (int64_t r = begin; r < end; ++r) {
    const float* mask = operands.mask == nullptr ? nullptr : operands.mask + HeadOffset(plan, plan.mask, head) + r * plan.mask.row;
    factors[static_cast<size_t>(r - begin)] = plan.isa->softmax_row(softmax, scores + (r - begin) * plan.row, mask);
  }
  SmallProduct{plan, scores, plan.row, plan.keys, values, out, plan.out.row, plan.width, false}.Run(end - begin);
  for (int64_t r = 0; r < end - begin; ++r)
    plan.isa->scale_row(out + r * plan.out.row, plan.width, factors[static_cast<size_t>(r)]);
}

}  // namespace

int64_t AttentionPlan::KeyFloats() const { return RoundUp(depth * RoundUp(keys, isa->lanes), kLine); }
int64_t AttentionPlan::ValueFloats() const { return RoundUp(keys * RoundUp(width, isa->lanes), kLine); }

void CutAttention(AttentionPlan& plan, int threads) {
  constexpr int64_t kScoreFloats = int64_t{48} << 10;  // of a block, in the second-level cache
  constexpr int64_t kRows = 24;                        // a multiple of what the product kernels take at once
  plan.shares = std::max(1, threads);
  plan.row = RoundUp(plan.keys, kLine);
  if (plan.row / kLine % 2 == 0) plan.row += kLine;  // neighbouring rows in different sets of the cache
  plan.block = std::clamp(kScoreFloats / plan.row / kRows * kRows, kRows, kLargestBlock);
}

void RunAttention(const AttentionPlan& plan, const AttentionOperands& operands, float* scratch) {
  const int64_t blocks = (plan.queries + plan.block - 1) / plan.block;
  const int64_t jobs = NumElements(plan.heads) * blocks;
  ParallelRange(plan.shares, 1, [&](int64_t first, int64_t last) {
    for (int64_t share = first; share < last; ++share) {
      float* keys = scratch + share * (plan.ScoreFloats() + plan.KeyFloats() + plan.ValueFloats());
      float* values = keys + plan.KeyFloats();
      float* scores = values + plan.ValueFloats();
      int64_t packed = -1;
      for (int64_t job = jobs * share / plan.shares; job < jobs * (share + 1) / plan.shares; ++job) {
        const int64_t head = job / blocks;
        if (head != packed) {
          Pack(plan, operands.k + HeadOffset(plan, plan.k, head), plan.k, plan.depth, plan.keys, keys);
          Pack(plan, operands.v + HeadOffset(plan, plan.v, head), plan.v, plan.keys, plan.width, values);
          packed = head;
        }
        const int64_t begin = job % blocks * plan.block;
        const int64_t end = std::min(begin + plan.block, plan.queries);
        RunBlock(plan, operands, head, begin, end, keys, values, scores);
      }
    }
  });
}

}  // namespace mendel::cpu
