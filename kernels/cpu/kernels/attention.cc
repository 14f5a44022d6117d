#include "kernels/cpu/kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/lowering/masked_keys.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kLine = 16;
constexpr int64_t kLargestBlock = 96;
constexpr int64_t kWidest = 64;  ///< floats of a panel

int64_t RoundUp(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

/// A matrix in panels of columns, [panel][row][column], as the product kernel reads its weights.
/// Columns that do not exist become zeros.
void Pack(const AttentionPlan& plan, const float* from, const AttentionStrides& strides,
          int64_t rows, int64_t columns, float* to) {
  const int64_t lanes = plan.isa->lanes;
  const int64_t panel = plan.isa->panel_vectors * lanes;
  for (int64_t begin = 0; begin < columns; begin += panel) {
    const int64_t width = std::min(panel, RoundUp(columns - begin, lanes));
    const int64_t exist = std::min(width, columns - begin);
    for (int64_t r0 = 0; r0 < rows; r0 += kLine) {
      const int64_t r1 = std::min(rows, r0 + kLine);
      if (strides.column == 1) {
        for (int64_t r = r0; r < r1; ++r)
          std::copy_n(from + r * strides.row + begin, exist, to + r * width);
      } else {
        for (int64_t c = 0; c < exist; ++c) {
          const float* column = from + (begin + c) * strides.column;
          for (int64_t r = r0; r < r1; ++r) to[r * width + c] = column[r * strides.row];
        }
      }
      for (int64_t r = r0; r < r1 && exist < width; ++r)
        std::fill(to + r * width + exist, to + (r + 1) * width, 0.0f);
    }
    to += rows * width;
  }
}

/// dst = src * packed, `count` rows. Panels of `packed` have `packed_rows` rows, of which the first
/// `depth` are used.
struct SmallProduct {
  const AttentionPlan& plan;
  const float* src;
  int64_t src_row;
  int64_t depth;
  const float* packed;
  int64_t packed_rows;
  float* dst;
  int64_t dst_row;
  int64_t columns;
  bool padded;          ///< the last vector has room
  int64_t skipped = 0;  ///< rows of `packed` before the first one used

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
    for (int64_t r = 0; r < count; ++r) src_at[static_cast<size_t>(r)] = r * src_row;
    for (int64_t begin = 0; begin < columns; begin += panel) {
      b.channels = std::min(panel, columns - begin);
      b.vectors = (b.channels + lanes - 1) / lanes;
      for (int64_t r = 0; r < count; ++r) dst_at[static_cast<size_t>(r)] = r * dst_row + begin;
      b.weights = packed + packed_rows * begin + skipped * b.vectors * lanes;
      plan.isa->pointwise(b, WinogradEpilogue{});
    }
  }
};

/// A head's packed K and V.
struct PackedHead {
  int64_t head = -1;
  float* keys;
  float* values;
  HeadSizes sizes;
};

/// Queries [begin, end) of the packed head.
void RunBlock(const AttentionPlan& plan, const AttentionOperands& operands, PackedHead& packed,
              int64_t begin, int64_t end, float* scores) {
  const int64_t head = packed.head;
  const float* q = operands.q + HeadOffset(plan, plan.q, head) + begin * plan.q.row;
  float* out = operands.out + HeadOffset(plan, plan.out, head) + begin * plan.out.row;
  const KeyRange range = VisibleKeys(plan, operands, head, begin, end, packed.sizes);
  const int64_t keys = range.end - range.begin;
  // The range begins and ends with whole panels, or with the last key.
  const float* first_key = packed.keys + plan.depth * range.begin;
  SmallProduct{plan, q, plan.q.row, plan.depth, first_key, plan.depth, scores, plan.row, keys, true}
      .Run(end - begin);
  std::array<float, kLargestBlock> factors;
  for (int64_t r = begin; r < end; ++r) {
    const std::array<ScoreTerm, kMaxScoreTerms> terms =
        TermsOfRow(plan, operands, head, r, range.begin);
    const SoftmaxProblem softmax{keys, plan.scale, terms.data(),
                                 static_cast<int64_t>(plan.terms.size())};
    float* row = scores + (r - begin) * plan.row;
    float factor = plan.isa->softmax_row(softmax, row);
    if (plan.zero_nan && std::isnan(factor)) {  // then all of the row's weights are
      std::fill_n(row, keys, 0.0f);
      factor = 1;
    }
    factors[static_cast<size_t>(r - begin)] = factor;
  }
  SmallProduct product{plan,      scores, plan.row,     keys,       packed.values,
                       plan.keys, out,    plan.out.row, plan.width, false};
  product.skipped = range.begin;
  product.Run(end - begin);
  for (int64_t r = 0; r < end - begin; ++r)
    plan.isa->scale_row(out + r * plan.out.row, plan.width, factors[static_cast<size_t>(r)]);
}

}  // namespace

int64_t AttentionPlan::KeyFloats() const {
  return RoundUp(depth * RoundUp(keys, isa->lanes), kLine);
}
int64_t AttentionPlan::ValueFloats() const {
  return RoundUp(keys * RoundUp(width, isa->lanes), kLine);
}

int64_t HeadOffset(const AttentionPlan& plan, const AttentionStrides& strides, int64_t head) {
  int64_t offset = 0;
  for (size_t d = plan.heads.size(); d-- > 0; head /= plan.heads[d])
    offset += head % plan.heads[d] * strides.heads[d];
  return offset;
}

std::array<ScoreTerm, kMaxScoreTerms> TermsOfRow(const AttentionPlan& plan,
                                                 const AttentionOperands& operands, int64_t head,
                                                 int64_t query, int64_t begin) {
  std::array<ScoreTerm, kMaxScoreTerms> terms{};
  for (size_t k = 0; k < plan.terms.size(); ++k) {
    const AttentionTerm& term = plan.terms[k];
    const int64_t at = HeadOffset(plan, term.strides, head) + query * term.strides.row +
                       begin * term.strides.column;
    terms[k] = {nullptr, nullptr, term.strides.column, term.kept, term.other};
    if (term.condition) {
      terms[k].condition = reinterpret_cast<const uint8_t*>(operands.terms[k]) + at;
    } else {
      terms[k].summand = reinterpret_cast<const float*>(operands.terms[k]) + at;
    }
  }
  return terms;
}

void CutAttention(AttentionPlan& plan, int threads) {
  constexpr int64_t kScoreFloats = int64_t{48} << 10;  // of a block, in the second-level cache
  constexpr int64_t kRows = 24;  // a multiple of what the product kernels take at once
  plan.shares = std::max(1, threads);
  plan.row = RoundUp(plan.keys, kLine);
  if (plan.row / kLine % 2 == 0)
    plan.row += kLine;  // neighboring rows in different sets of the cache
  plan.block = std::clamp(kScoreFloats / plan.row / kRows * kRows, kRows, kLargestBlock);
}

void RunAttention(const AttentionPlan& plan, const AttentionOperands& operands, float* scratch) {
  const int64_t blocks = (plan.queries + plan.block - 1) / plan.block;
  const int64_t jobs = NumElements(plan.heads) * blocks;
  ParallelRange(plan.shares, 1, [&](int64_t first, int64_t last) {
    for (int64_t share = first; share < last; ++share) {
      PackedHead packed;
      packed.keys = scratch + share * (plan.ScoreFloats() + plan.KeyFloats() + plan.ValueFloats());
      packed.values = packed.keys + plan.KeyFloats();
      float* scores = packed.values + plan.ValueFloats();
      for (int64_t job = jobs * share / plan.shares; job < jobs * (share + 1) / plan.shares;
           ++job) {
        const int64_t head = job / blocks;
        if (head != packed.head) {
          Pack(plan, operands.k + HeadOffset(plan, plan.k, head), plan.k, plan.depth, plan.keys,
               packed.keys);
          Pack(plan, operands.v + HeadOffset(plan, plan.v, head), plan.v, plan.keys, plan.width,
               packed.values);
          packed.head = head;
          packed.sizes = {};
        }
        const int64_t begin = job % blocks * plan.block;
        const int64_t end = std::min(begin + plan.block, plan.queries);
        RunBlock(plan, operands, packed, begin, end, scores);
      }
    }
  });
}

}  // namespace mendel::cpu
