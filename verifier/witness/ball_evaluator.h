// Evaluation of graphs in ball arithmetic: rigorous enclosures of outputs over the reals, weights
// being the numbers stored.
//
// Integers are exact, or the evaluation says that they could not be decided. Booleans may stay
// open: 0, 1 or both.
#ifndef MENDEL_VERIFIER_WITNESS_BALL_EVALUATOR_H_
#define MENDEL_VERIFIER_WITNESS_BALL_EVALUATOR_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ball.h"
#include "base/deadline.h"
#include "graph/evaluate.h"
#include "graph/graph.h"

namespace mendel {

/// One value; one of the three lists is filled, row-major.
struct BallValue {
  TensorType type;
  std::vector<Ball> balls;
  std::vector<int64_t> integers;  ///< known elements of an integral dtype
  std::vector<double> numbers;    ///< exact elements of a float dtype (inputs and constants)

  static BallValue FromHost(const HostValue& value);
  /// Element `flat`, whatever the dtype.
  Ball At(int64_t flat) const;
};

/// Output `output` of one node in the thread's BallScope. Aborted when a decision is open at this
/// precision, Unimplemented when there is no enclosure at any; both say why. Large operators use
/// several threads.
absl::StatusOr<BallValue> EvaluateNodeInBalls(const OpDefinition& op, const NodeView& node,
                                              std::span<const BallValue* const> inputs, int output);

/// The graph's outputs in order; `inputs` as Evaluate takes them (InvalidArgument). Values are
/// freed after their last use. Also DeadlineExceeded, looked at between nodes.
absl::StatusOr<std::vector<BallValue>> EvaluateInBalls(const Graph& graph,
                                                       std::span<const HostValue> inputs,
                                                       const BallContext& context,
                                                       const Deadline& deadline);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WITNESS_BALL_EVALUATOR_H_
