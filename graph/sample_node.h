// Valid nodes and operands drawn at random from an operator's sampler: what every registry-driven
// test starts from.
#ifndef MENDEL_GRAPH_SAMPLE_NODE_H_
#define MENDEL_GRAPH_SAMPLE_NODE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "graph/evaluate.h"
#include "graph/op_definition.h"

namespace mendel {

/// One node: attributes complete, outputs inferred.
struct SampledNode {
  const OpDefinition* op = nullptr;
  std::vector<TensorType> inputs;
  Attributes attrs;
  std::vector<TensorType> outputs;
  std::vector<std::pair<int, std::pair<double, double>>> ranges;  ///< as in OpSample

  NodeView view() const { return {inputs, attrs, outputs}; }
};

/// The node of `op` with these inputs and attributes, or the builder's refusal.
absl::StatusOr<SampledNode> MakeNode(const OpDefinition& op, std::vector<TensorType> inputs,
                                     Attributes attrs);
/// A draw from op.sample, which must not be null (CHECK). An error is a fault of the sampler.
absl::StatusOr<SampledNode> SampleNode(const OpDefinition& op, Rng& rng);

/// Operands inside the node's ranges; otherwise floats in [-2, 2), integers in [-8, 8] (u8: [0,
/// 8]), Booleans. Floats are multiples of 1/steps: with at most 64 steps exact in every float
/// dtype, with few steps often equal or integral. `steps` a power of two.
std::vector<HostValue> SampleInputs(const SampledNode& node, Rng& rng, int64_t steps = 64);

/// "Op(f32[2,3], ...) {attributes}" for messages.
std::string DescribeNode(const SampledNode& node);

}  // namespace mendel

#endif  // MENDEL_GRAPH_SAMPLE_NODE_H_
