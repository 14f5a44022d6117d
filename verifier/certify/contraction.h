// Claims about linear operators, checked on one random combination of their slices instead of slice
// by slice.
//
// Two values are equal along an axis when the sums of their slices, each multiplied by a free
// symbol of its own, are equal: the symbols occur nowhere else. Such a sum is formed before a
// convolution or product whose output channels are the slices: the weights are combined, and one
// channel is computed instead of all. Each symbol adds one to the degree (segments.h).
#ifndef MENDEL_VERIFIER_CERTIFY_CONTRACTION_H_
#define MENDEL_VERIFIER_CERTIFY_CONTRACTION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "verifier/certify/numbering.h"
#include "verifier/field_evaluator.h"

namespace mendel {

/// The part of one operand that the combination of a node's output slices needs.
struct CombinedOperand {
  enum class Use {
    kWhole,     ///< the operand as it is
    kCombined,  ///< its slices along `axis`, combined with the factors from number `first` on
    kRepeated,  ///< the operand times the sum of all factors: each slice reads all of it
  };
  Use use = Use::kWhole;
  size_t axis = 0;
  int64_t first = 0;
};

/// One entry an operand when the output of `node` is combined along `axis`; nullopt if the operator
/// is not known to be linear in slices of its operands.
std::optional<std::vector<CombinedOperand>> CombinedOperands(const OpDefinition& op,
                                                             const NodeView& node, size_t axis);

/// sum over i of factors[i] * slice i of `value` along `axis`; `shape` is that of the value.
FieldValue CombineSlices(const PrimeField& field, const FieldValue& value, const Shape& shape,
                         size_t axis, std::span<const Fp> factors);

/// Combinations of numbers, formed as early as linearity allows.
class Contraction {
 public:
  /// `free`: numbers that are read and never computed (Partition::free).
  Contraction(const Numbering& numbering, const std::vector<bool>& free)
      : numbering_(numbering), free_(free) {}

  /// The numbers, repeated as often as they are read, whose elements `Evaluate` requests, and the
  /// multiply-adds that it saves. The number itself is computed even when it is free: a claim is
  /// about it.
  struct Plan {
    std::vector<int32_t> whole;
    double saved = 0;
  };
  /// Returns nullopt if the number's own node cannot be combined, or too many nodes would be.
  std::optional<Plan> Prepare(int32_t number, size_t axis) const;

  /// CombineSlices of the value of `number`; `whole(n)` gives the elements of the numbers of
  /// Prepare.
  using Elements = std::function<const FieldValue&(int32_t)>;
  FieldValue Evaluate(const FieldEvaluator& evaluator, int32_t number, size_t axis,
                      std::span<const Fp> factors, const Elements& whole) const;

 private:
  using OperandList = std::vector<CombinedOperand>;

  /// The operands of a number, its node's output being combined along `axis`.
  std::optional<OperandList> OperandsOf(int32_t number, size_t axis) const;
  /// The same of an operand with that shape; nothing: its elements are read.
  std::optional<OperandList> Open(int32_t number, const Shape& shape, size_t axis) const;
  /// False when there are too many nodes.
  bool Collect(int32_t number, size_t axis, const OperandList& operands, int& nodes,
               Plan& plan) const;
  FieldValue Combine(const FieldEvaluator& evaluator, int32_t number, size_t axis,
                     const OperandList& operands, std::span<const Fp> factors,
                     const Elements& whole) const;

  const Numbering& numbering_;
  const std::vector<bool>& free_;
};

}  // namespace mendel

#endif  // MENDEL_VERIFIER_CERTIFY_CONTRACTION_H_
