// Helpers of the tests of every operator: one sampled node evaluated in doubles, in GF(p) and as
// bounds; boxes; statements of access patterns.
#ifndef MENDEL_GRAPH_OP_CONFORMANCE_H_
#define MENDEL_GRAPH_OP_CONFORMANCE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "graph/sample_node.h"

namespace mendel {

std::vector<HostValue> EvaluateReal(const SampledNode& node, const std::vector<HostValue>& inputs);

/// One operand in the field: elements, or known integers.
struct FieldOperand {
  std::vector<Fp> scalars;
  std::vector<int64_t> integers;
};

struct FieldResult {
  std::vector<std::vector<Fp>> outputs;
  bool zero_denominator = false;
};

bool IsIndexInput(const OpDefinition& op, size_t input);

FieldResult EvaluateField(const SampledNode& node, const std::vector<FieldOperand>& inputs,
                          std::array<uint64_t, 2> key);
/// The operands' own values as field elements; integers are known numbers when `known` or when they
/// are indices.
std::vector<FieldOperand> FieldImages(const SampledNode& node, const std::vector<HostValue>& inputs,
                                      bool known);
/// Random field elements in place of all operands but indices.
std::vector<FieldOperand> RandomField(const SampledNode& node, const std::vector<HostValue>& inputs,
                                      Rng& rng);

struct BoundResult {
  Bound bound;
  double operand_count = 0;
};

BoundResult EvaluateBound(const SampledNode& node, const std::vector<HostValue>& inputs,
                          int output);

/// True when both are equal, or both are NaN.
bool Same(double a, double b);
/// Equality up to a rounding of doubles.
bool Near(double a, double b);

/// Number of stored elements.
int64_t CountOf(const HostValue& value);
/// Elements of `value` in `box`.
HostValue Cut(const HostValue& value, const Box& box);
/// A random box, of one element now and then.
Box RandomBox(Rng& rng, const Shape& shape);

/// True where `pattern` states that element `out_flat` of output 0 reads element `in_flat` of this
/// input.
bool Covers(const AccessPattern& pattern, const SampledNode& node, size_t input, int64_t out_flat,
            int64_t in_flat);

}  // namespace mendel

#endif  // MENDEL_GRAPH_OP_CONFORMANCE_H_
