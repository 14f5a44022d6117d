// Hidden keys are those that none of a block's queries see: causal masks, padded batches, windows.
// They are found at run time, from the values of the masks.
#ifndef MENDEL_KERNELS_CPU_LOWERING_MASKED_KEYS_H_
#define MENDEL_KERNELS_CPU_LOWERING_MASKED_KEYS_H_

#include <cstdint>
#include <optional>

#include "kernels/cpu/kernels/attention.h"

namespace mendel::cpu {

/// Largest magnitudes in a head's K and V; NaN when the matrix contains one. Computed at first use.
struct HeadSizes {
  std::optional<float> keys, values;
};

struct KeyRange {
  int64_t begin, end;
};

/// Returns the keys that queries [begin, end) of the head see. Keys outside the range have weights
/// of zero, whatever numbers K and Q contain. Leaving them out changes nothing: scores and V are
/// finite (0 times infinity is NaN), and each of these queries sees a key by which the weights of
/// all hidden ones underflow. Returns all keys when none or too few are hidden.
KeyRange VisibleKeys(const AttentionPlan& plan, const AttentionOperands& operands, int64_t head,
                     int64_t begin, int64_t end, HeadSizes& sizes);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_MASKED_KEYS_H_
