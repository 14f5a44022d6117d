// The canonical program under construction: every operation is rewritten by the axioms as it is
// added, on operands that are canonical already, and operations met before are shared.
#ifndef MENDEL_VERIFIER_AXIOMS_TERMS_H_
#define MENDEL_VERIFIER_AXIOMS_TERMS_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "base/hash.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// Terms rewrite one program. Errors stick, as in Emitter: they are our bugs and reported by
/// Finish(). Not thread-safe.
class Terms {
 public:
  Terms(std::string name, WeightMode weights, std::map<std::string, int>* used);

  ValueId Input(const std::string& name, const TensorType& type);
  ValueId Constant(const Tensor& value, const std::string& symbol);
  /// The canonical form of `op(inputs)`; one output.
  ValueId Op(std::string_view op, std::vector<ValueId> inputs, Attributes attrs = {},
             const std::string& name = "");
  /// `op(inputs)`, which the caller knows to be canonical.
  ValueId CanonicalOp(std::string_view op, std::vector<ValueId> inputs);
  /// A node of any number of outputs as it is.
  int32_t Copy(const Node& node, std::vector<ValueId> inputs);
  /// A literal of rank 0. `value` must be one of the dtype's (see RoundedLiteral).
  ValueId Literal(DType dtype, double value);
  /// The literal that stands for a constant, counted when it is rounded: of f32 and f64, whose
  /// rounding is no more than that of the constants that exporters write; nothing in the 16-bit
  /// formats unless it is exact.
  std::optional<ValueId> RoundedLiteral(DType dtype, double value, const std::string& what);
  /// RoundedLiteral for an attribute, which must be a number of the dtype or a decimal of few
  /// digits (0.01, 1e-5).
  std::optional<ValueId> Attribute(ValueId value, const std::string& name);

  ValueId Add(ValueId a, ValueId b) { return Op("Add", {a, b}); }
  ValueId Sub(ValueId a, ValueId b) { return Op("Sub", {a, b}); }
  ValueId Mul(ValueId a, ValueId b) { return Op("Mul", {a, b}); }
  ValueId Div(ValueId a, ValueId b) { return Op("Div", {a, b}); }
  ValueId Unary(std::string_view op, ValueId x) { return Op(op, {x}); }
  ValueId Add(ValueId a, double b) { return Add(a, Literal(type(a).dtype, b)); }
  ValueId Mul(ValueId a, double b) { return Mul(a, Literal(type(a).dtype, b)); }
  ValueId Div(ValueId a, double b) { return Div(a, Literal(type(a).dtype, b)); }
  /// x^n, n >= 1.
  ValueId Power(ValueId x, int n);
  ValueId Reduce(std::string_view op, ValueId x, Ints axes, bool keepdims);
  ValueId Reshape(ValueId x, const Shape& shape);
  /// `x` broadcast to `shape`, or itself.
  ValueId Fit(ValueId x, const Shape& shape);

  const Node& node(ValueId value) const { return builder_.node(value.node); }
  const TensorType& type(ValueId value) const { return builder_.type(value); }
  const Shape& shape(ValueId value) const { return type(value).shape; }
  DType dtype(ValueId value) const { return type(value).dtype; }
  std::vector<TensorType> InputTypes(ValueId value) const;
  bool Is(ValueId value, std::string_view op) const { return node(value).op->name == op; }
  ValueId in(ValueId value, size_t k) const { return node(value).inputs[k]; }
  /// The one number that all elements of a known constant are, of any shape with elements.
  std::optional<double> Number(ValueId value) const;
  /// The one integer that all elements of a constant of an integer dtype are.
  std::optional<int64_t> Integer(ValueId value) const;
  /// Number of a literal of rank 0 and a float dtype: multiplying by it changes no shape.
  std::optional<double> Scalar(ValueId value) const;
  Sign sign(ValueId value) const { return signs_[static_cast<size_t>(value.node)]; }
  /// The value is finite for every input, so that no comparison of it is one of NaN.
  bool IsDefined(ValueId value) const { return defined_[static_cast<size_t>(value.node)]; }
  bool IsPositive(ValueId value) const { return sign(value) == Sign::kPositive; }
  bool IsNonNegative(ValueId value) const { return sign(value) != Sign::kUnknown; }
  /// A number of the expression, the same in every program: orders the operands of commutative
  /// operators.
  const Hash128& hash(ValueId value) const { return hashes_[static_cast<size_t>(value.node)]; }
  WeightMode weights() const { return weights_; }
  /// May a rounded literal stand for its constant in what is added from now on? Not where a
  /// comparison, a cast or an index is computed of it.
  void AllowRounding(bool allowed) { may_round_ = allowed; }
  bool MayRound() const { return may_round_; }
  /// The same for a value's dtype: the 16-bit formats have fewer numbers than there are constants.
  bool MayRoundIn(ValueId value) const {
    return may_round_ && (dtype(value) == DType::kF32 || dtype(value) == DType::kF64);
  }

  /// A literal factor stays the number that it is: no constant is looked for.
  void KeepFactors(bool keep) { keep_factors_ = keep; }
  bool KeepsFactors() const { return keep_factors_; }

  /// Only axioms of Domain::kAll apply.
  void KeepDomain(bool keep) { keep_domain_ = keep; }

  /// Some rule writes a form of its own, which it does not look at again.
  void Settle(bool settling) { settling_ = settling; }
  bool Settles() const { return settling_; }

  /// Counts one application.
  void Use(const std::string& axiom);
  void Output(std::string name, ValueId value) { builder_.Output(std::move(name), value); }
  absl::StatusOr<Graph> Finish();

 private:
  ValueId Raw(std::string_view op, std::vector<ValueId> inputs, Attributes attrs,
              const std::string& name);
  ValueId Rewrite(ValueId value);
  bool DefinedHere(const Node& node, std::span<const TensorType> types,
                   std::span<const Sign> signs) const;
  void Describe(int32_t node);
  bool IsKeptSum(ValueId value) const;
  Sign StructuralSign(ValueId value) const;

  GraphBuilder builder_;
  const WeightMode weights_;
  std::map<std::string, int>* const used_;
  absl::Status status_;
  std::vector<Sign> signs_;
  std::vector<bool> defined_;
  std::vector<Hash128> hashes_;
  std::unordered_map<std::string, int32_t> known_;
  std::map<std::pair<int32_t, bool>, ValueId> rewritten_;  ///< by node and may_round_
  bool may_round_ = true;
  bool keep_factors_ = false;
  bool keep_domain_ = false;
  bool settling_ = false;
  int depth_ = 0;
  int64_t steps_ = 0;
};

}  // namespace mendel

#endif  // MENDEL_VERIFIER_AXIOMS_TERMS_H_
