// Loops of ONNX as the operator Loop (graph/loop.h), or with their steps written one after the
// other: short ones, and those whose body no Loop can have.
#ifndef MENDEL_ONNX_OPS_STEPS_H_
#define MENDEL_ONNX_OPS_STEPS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onnx/op_context.h"

namespace mendel {

/// Sequences and loops of at most as many steps are written one after the other: the search sees
/// through them, and longer ones would be graphs of many hundreds of nodes.
inline constexpr int64_t kShortLoop = 64;
/// The most steps that are written one after the other.
inline constexpr int64_t kMaxWrittenSteps = 1024;

/// A loop that is written step by step.
struct WrittenLoop {
  const onnx::GraphProto* body = nullptr;
  int64_t steps = 0;
  std::vector<ValueId> state;  ///< carried values before the first step
  /// The body's inputs in step `k`, given the state. Null: the state alone.
  std::function<absl::StatusOr<std::vector<ValueId>>(int64_t k, const std::vector<ValueId>& state)>
      inputs;
  /// Takes what precedes the carried values among the body's outputs away and returns false when
  /// the loop ends before step `k + 1`. Null: nothing precedes them.
  std::function<absl::StatusOr<bool>(int64_t k, std::vector<ValueId>& outputs)> goes_on;
  std::string why;  ///< the reason why it is no Loop, for the error of one that is too long
};

struct WrittenResults {
  std::vector<ValueId> state;                 ///< after the last step
  std::vector<std::vector<ValueId>> scanned;  ///< by scanned output, then by step
};

/// Unimplemented for more than kMaxWrittenSteps steps.
absl::StatusOr<WrittenResults> WriteSteps(OpContext& op, const WrittenLoop& loop);

/// Values of equal types, stacked along a new dimension `axis`. At least one.
absl::StatusOr<ValueId> Stacked(OpContext& op, std::vector<ValueId> values, int64_t axis);

/// Slices [begin, end) of `value` along its first dimension.
absl::StatusOr<ValueId> Slices(OpContext& op, ValueId value, int64_t begin, int64_t end);

/// The operands of a Loop: carried values, scanned ones, invariants.
struct LoopOperands {
  std::vector<ValueId> values;
  size_t carried = 0;
  size_t scanned = 0;
  int64_t steps = 0;
  bool reverse = false;
};
/// The results of a Loop with this body, without the operands that the body does not read.
/// InvalidArgument where no Loop can have the body.
absl::StatusOr<std::vector<ValueId>> EmitLoop(OpContext& op, const Graph& body,
                                              const LoopOperands& operands);

}  // namespace mendel

#endif  // MENDEL_ONNX_OPS_STEPS_H_
