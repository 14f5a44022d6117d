// Evaluation of graphs in GF(p) for one random test (docs/verifier.md, "Evaluation").
//
// Inputs and symbolic weights are uniformly random elements that follow from the draw's key and
// their name or position; literals are the dyadic rationals that they are (non-finite ones a keyed
// symbol each); integral constants and what is computed from them alone are exact integers.
// Run-time integers are opaque symbols. A node that sorts, indexes by unknown indices or computes
// with run-time integers is one opaque oracle of all elements of its inputs.
#ifndef MENDEL_VERIFIER_FIELD_EVALUATOR_H_
#define MENDEL_VERIFIER_FIELD_EVALUATOR_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "base/prime_field.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// A draw from the operating system's entropy, with a certifying prime: random in [2^59, 2^60)
/// among those modulo which 2 is a square.
Draw FreshDraw();
/// A draw that follows from `rng`, with a certifying prime.
Draw SeededDraw(Rng& rng);
/// Is the draw's prime the one that the two functions above derive from its key?
bool FollowsFromKey(const Draw& draw);
/// The draw with `key` and such a prime in [2^19, 2^20): matrix products are several times faster.
/// It proves nothing; what differs under it differs.
Draw SelectionDraw(std::array<uint64_t, 2> key);

/// Elements of one value, row-major. A concrete integral value has `integers` and no `scalars`.
struct FieldValue {
  std::vector<Fp> scalars;
  std::vector<int64_t> integers;
  bool concrete = false;

  int64_t size() const { return static_cast<int64_t>(concrete ? integers.size() : scalars.size()); }
  /// Element `flat` as a field element; needs a FieldScope.
  Fp At(int64_t flat) const {
    const size_t i = static_cast<size_t>(flat);
    return concrete ? Fp{FieldScope::Current().FromInt(integers[i])} : scalars[i];
  }
};

/// Is the node an oracle and no arithmetic (verifier/opaque.h)? `concrete[k]` says whether input k
/// is concrete.
bool IsOpaque(const OpDefinition& op, const NodeView& node, const std::vector<bool>& concrete);
/// Are the outputs of a node with these inputs concrete integers?
bool IsConcrete(const NodeView& node, const std::vector<bool>& concrete);
/// Every output element is an element of an input, chosen without looking at values, or zero
/// (views, slices, concatenations).
bool SelectsElements(const OpDefinition& op);
/// The same of a node: Pad does unless it pads by a literal, which an integer of its width may not
/// hold.
bool MovesElements(const OpDefinition& op, const Attributes& attrs);

/// Values under one draw. Immutable but for the zero-denominator flag; one object a thread.
class FieldEvaluator {
 public:
  /// CHECK-fails unless draw.prime is a prime in (2, 2^60).
  FieldEvaluator(const Draw& draw, WeightMode weights);

  const PrimeField& field() const { return field_; }
  /// `count` random elements that follow from the key, `kind` and `name`.
  FieldValue Symbol(std::string_view kind, std::string_view name, int64_t count) const;
  /// The value of an Input node, drawn by name; of a Constant node.
  FieldValue Input(const Node& node) const;
  FieldValue Constant(const Node& node) const;
  /// Elements `positions` of Symbol(kind, name, ..), and of Constant(node) for a float Constant,
  /// without the others.
  FieldValue SymbolAt(std::string_view kind, std::string_view name,
                      std::span<const int64_t> positions) const;
  FieldValue ConstantAt(const Node& node, std::span<const int64_t> positions) const;
  /// Output `output` of a node. Operands must have as many elements as the node's input types say.
  FieldValue Apply(const OpDefinition& op, const NodeView& node,
                   std::span<const FieldValue* const> inputs, int output) const;

  /// Some denominator was zero: values since then mean nothing and the draw must be repeated.
  bool zero_denominator() const { return arithmetic_.zero_denominator(); }

 private:
  /// Elements of `root` = Sqrt(operand) where the operand is 2 (root_of_two.h).
  void PinRootOfTwo(const FieldValue& operand, FieldValue& root) const;

  PrimeField field_;
  WeightMode weights_;
  Arithmetic<Fp> arithmetic_;
};

enum class InputNaming { kByName, kByPosition };

/// Called once with each value. Inputs and Constants are drawn when they are first read.
using ValueVisitor = std::function<void(ValueId, const FieldValue&)>;

/// Visits every value of `graph` that an output needs, operands before their readers. Two graphs
/// under the same draw see the same inputs where `naming` says so and the same weights where the
/// symbols are equal. Values live from their first to their last use. Aborted when a denominator is
/// zero: draw again. DeadlineExceeded.
absl::Status EvaluateValues(const Graph& graph, const Draw& draw, WeightMode weights,
                            InputNaming naming, const Deadline& deadline,
                            const ValueVisitor& visit);

/// All outputs of `graph`, in order, row-major; as EvaluateValues.
absl::StatusOr<std::vector<std::vector<Fp>>> EvaluateOutputs(
    const Graph& graph, const Draw& draw, WeightMode weights, InputNaming naming,
    const Deadline& deadline = Deadline::Never());

}  // namespace mendel

#endif  // MENDEL_VERIFIER_FIELD_EVALUATOR_H_
