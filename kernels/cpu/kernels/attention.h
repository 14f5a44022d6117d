// softmax(t) V, t = scale * Q K and up to four summands or conditions, for many heads, a block of
// queries at a time, so that scores never leave the cache. Each block's scores are complete before
// their softmax: no running maximum, and the same sums as the operators' own. Keys before or after
// all that a block's queries see (masked_keys.h) are left out.
#ifndef MENDEL_KERNELS_CPU_KERNELS_ATTENTION_H_
#define MENDEL_KERNELS_CPU_KERNELS_ATTENTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/types.h"
#include "kernels/cpu/kernels/direct_kernels.h"

namespace mendel::cpu {

inline constexpr std::string_view kNativeAttention = "attention-own";
inline constexpr size_t kMaxScoreTerms = 4;

/// Elements between heads (one a dimension of `heads`), rows and columns of a matrix; zero where it
/// is broadcast.
struct AttentionStrides {
  Shape heads;
  int64_t row = 0;
  int64_t column = 0;
};

/// A summand of scores, f32, or a condition, Booleans: where it is not `kept`, the score becomes
/// `other`.
struct AttentionTerm {
  AttentionStrides strides;  ///< column: 1 or 0
  bool condition = false;
  bool kept = true;
  float other = 0;
};

struct AttentionPlan {
  const DirectIsa* isa = nullptr;
  Shape heads;          ///< batch dimensions
  int64_t queries = 1;  ///< rows of Q
  int64_t keys = 1;     ///< columns of K, rows of V
  int64_t depth = 1;    ///< columns of Q, rows of K
  int64_t width = 1;    ///< columns of V
  AttentionStrides q;   ///< column: 1
  AttentionStrides k, v;
  AttentionStrides out;              ///< column: 1
  std::vector<AttentionTerm> terms;  ///< applied in order, after the scale; kMaxScoreTerms at most
  float scale = 1;
  bool zero_nan = false;  ///< weights of the softmax that are NaN become zero
  int64_t block = 1;      ///< queries at once
  int64_t shares = 1;     ///< threads
  int64_t row = 0;        ///< floats between rows of scores

  int64_t ScoreFloats() const { return block * row; }
  int64_t KeyFloats() const;    ///< of a head's K, packed
  int64_t ValueFloats() const;  ///< of its V
  int64_t ScratchBytes() const {
    return shares * (ScoreFloats() + KeyFloats() + ValueFloats()) *
           static_cast<int64_t>(sizeof(float));
  }
};

/// Fills what follows from the fields up to `zero_nan`.
void CutAttention(AttentionPlan& plan, int threads);

struct AttentionOperands {
  const float* q;
  const float* k;
  const float* v;
  std::array<const std::byte*, kMaxScoreTerms> terms;  ///< of the plan's terms
  float* out;
};
/// Runs in the current ThreadScope. `scratch` has ScratchBytes() bytes and lies on a 64-byte
/// boundary.
void RunAttention(const AttentionPlan& plan, const AttentionOperands& operands, float* scratch);

/// Elements from the first head to a head's matrix.
int64_t HeadOffset(const AttentionPlan& plan, const AttentionStrides& strides, int64_t head);
/// The plan's terms for row `query` of a head, from the key `begin`.
std::array<ScoreTerm, kMaxScoreTerms> TermsOfRow(const AttentionPlan& plan,
                                                 const AttentionOperands& operands, int64_t head,
                                                 int64_t query, int64_t begin);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_ATTENTION_H_
