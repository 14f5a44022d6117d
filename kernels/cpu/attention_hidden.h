// Keys that none of a block's queries see: causal masks, padded batches, windows. Found while running, from what masks hold then.
#ifndef MENDEL_KERNELS_CPU_ATTENTION_HIDDEN_H_
#define MENDEL_KERNELS_CPU_ATTENTION_HIDDEN_H_

#include <cstdint>
#include <optional>

#include "kernels/cpu/attention.h"

namespace mendel::cpu {

/// Largest magnitudes in a head's K and V, NaN when either holds one. Found when first asked for.
struct HeadSizes {
  std::optional<float> keys, values;
};

struct KeyRange {
  int64_t begin, end;
};

/// Keys outside the range have weights of zero for queries [begin, end) of the head, whatever numbers K and Q hold, and leaving
/// them out changes nothing: scores and V are finite (0 times infinity is NaN), and each of these queries sees a key by which the
/// weights of all hidden ones underflow. All keys when there are no such or not enough of them.
KeyRange VisibleKeys(const AttentionPlan& plan, const AttentionOperands& operands, int64_t head, int64_t begin, int64_t end,
                     HeadSizes& sizes);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_ATTENTION_HIDDEN_H_
