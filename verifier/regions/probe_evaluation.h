// Evaluation of restricted programs in GF(p): little memory, and of weights and inputs only the
// elements that are read.
#ifndef MENDEL_VERIFIER_REGIONS_PROBE_EVALUATION_H_
#define MENDEL_VERIFIER_REGIONS_PROBE_EVALUATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "graph/graph.h"
#include "verifier/field_evaluator.h"

namespace mendel {

/// The order in which a graph's values are computed: two programs over the same weights go side by
/// side, so that no weight is drawn twice or kept long. Inputs and Constants are drawn at their
/// first reader; where all that is read of one is a slice, the rest is never drawn.
class ProbeSchedule {
 public:
  /// `graph` must outlive it.
  explicit ProbeSchedule(const Graph& graph);

  /// Bytes of the values alive at once, at most.
  int64_t PeakBytes() const { return peak_bytes_; }

  /// All outputs in order, row-major. Equal to EvaluateOutputs(graph, draw, weights,
  /// InputNaming::kByPosition, deadline).
  absl::StatusOr<std::vector<std::vector<Fp>>> Evaluate(const Draw& draw, WeightMode weights,
                                                        const Deadline& deadline) const;

 private:
  /// A node that reads single elements of an Input or a float Constant, chosen by position alone.
  struct Pick {
    int32_t node = -1;               ///< the operand; -1: no pick
    std::vector<int64_t> positions;  ///< an entry an output element
  };
  using Values = std::vector<std::vector<FieldValue>>;

  Pick PickOf(int32_t id) const;
  bool IsTerminal(int32_t id) const {
    return IsInput(graph_.node(id)) || IsConstant(graph_.node(id));
  }
  int64_t BytesOf(int32_t id) const;
  void MeasurePeak();
  FieldValue DrawTerminal(const FieldEvaluator& evaluator, int32_t id) const;
  FieldValue DrawPick(const FieldEvaluator& evaluator, const Pick& pick) const;
  absl::Status Step(const FieldEvaluator& evaluator, int32_t id, Values& values) const;
  void Release(int32_t id, std::vector<int>& uses, Values& values) const;

  const Graph& graph_;
  std::vector<int32_t> order_;  ///< nodes computed, without Inputs and Constants
  std::vector<Pick> picks_;     ///< by node
  std::vector<int> uses_;       ///< by node: readers that need the whole value, outputs included
  std::vector<int64_t> input_rank_;  ///< by node: position among the inputs
  int64_t peak_bytes_ = 0;
};

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_PROBE_EVALUATION_H_
