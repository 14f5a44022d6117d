// softmax(scale * Q K + mask) V for many heads, a block of queries at a time, so that scores never leave the cache. Each block's
// scores are complete before their softmax: no running maximum, and the same sums as the operators' own.
#ifndef MENDEL_KERNELS_CPU_ATTENTION_H_
#define MENDEL_KERNELS_CPU_ATTENTION_H_

#include <cstdint>
#include <string_view>

#include "graph/types.h"
#include "kernels/cpu/direct_kernels.h"

namespace mendel::cpu {

inline constexpr std::string_view kOwnAttention = "attention-own";

/// Floats between heads (one a dimension of `heads`), rows and columns of a matrix; zero where it is broadcast.
struct AttentionStrides {
  Shape heads;
  int64_t row = 0;
  int64_t column = 0;
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
  AttentionStrides mask;  ///< column: 1
  AttentionStrides out;   ///< column: 1
  float scale = 1;
  int64_t block = 1;   ///< queries at once
  int64_t shares = 1;  ///< threads
  int64_t row = 0;     ///< floats between rows of scores

  int64_t ScoreFloats() const { return block * row; }
  int64_t KeyFloats() const;    ///< of a head's K, packed
  int64_t ValueFloats() const;  ///< of its V
  int64_t ScratchBytes() const {
    return shares * (ScoreFloats() + KeyFloats() + ValueFloats()) * static_cast<int64_t>(sizeof(float));
  }
};

/// Fills what follows from the fields up to `scale`.
void CutAttention(AttentionPlan& plan, int threads);

struct AttentionOperands {
  const float* q;
  const float* k;
  const float* v;
  const float* mask;  ///< null: none
  float* out;
};
/// In the current ThreadScope. `scratch`: ScratchBytes() bytes on a 64-byte boundary.
void RunAttention(const AttentionPlan& plan, const AttentionOperands& operands, float* scratch);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_ATTENTION_H_
