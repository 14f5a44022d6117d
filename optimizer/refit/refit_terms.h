// Both programs of a refit in one space of terms: equal operator, attributes and operands are one
// term.
#ifndef MENDEL_OPTIMIZER_REFIT_REFIT_TERMS_H_
#define MENDEL_OPTIMIZER_REFIT_REFIT_TERMS_H_

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph.h"

namespace mendel {

/// A value of the common space.
using RefitTerm = ValueId;

/// Grows only; terms stay valid. After an error every call returns a placeholder (a scalar), and
/// status() says what was wrong.
class RefitTerms {
 public:
  /// Inputs of one name are one term.
  RefitTerm Input(const std::string& name, const TensorType& type);
  /// `symbol` empty: a literal. Constants that are zero or one in all elements are literals always.
  RefitTerm Constant(const Tensor& value, const std::string& symbol);
  RefitTerm Op(std::string_view op, std::vector<RefitTerm> inputs, Attributes attrs = {}) {
    return Ops(op, std::move(inputs), attrs)[0];
  }
  /// All outputs of the node.
  std::vector<RefitTerm> Ops(std::string_view op, std::vector<RefitTerm> inputs,
                             const Attributes& attrs);
  RefitTerm Reshape(RefitTerm x, Shape shape);

  const Node& node(RefitTerm term) const { return builder_.node(term.node); }
  const TensorType& type(RefitTerm term) const { return builder_.type(term); }
  const Shape& shape(RefitTerm term) const { return type(term).shape; }
  /// Nodes so far; operands have smaller numbers than what reads them.
  int32_t size() const { return static_cast<int32_t>(is_weight_.size()); }
  /// Does the term depend on constants only?
  bool IsWeight(RefitTerm term) const { return is_weight_[static_cast<size_t>(term.node)]; }
  /// A floating-point constant all of whose elements are `value`.
  bool IsFilled(RefitTerm term, double value) const;
  const absl::Status& status() const { return status_; }

 private:
  RefitTerm Placeholder() { return Constant(Tensor::Scalar(DType::kF32, 0), ""); }
  void Mark(int32_t node);

  GraphBuilder builder_;
  std::vector<bool> is_weight_;
  std::map<std::string, RefitTerm> inputs_;
  std::unordered_map<std::string, int32_t> known_;
  absl::Status status_;
};

/// Copies a term and all it depends on into a graph under construction; remembers what it copied.
class RefitCopier {
 public:
  RefitCopier(const RefitTerms& terms, GraphBuilder& builder) : terms_(terms), builder_(builder) {}
  absl::StatusOr<ValueId> Copy(RefitTerm term);

 private:
  const RefitTerms& terms_;
  GraphBuilder& builder_;
  std::unordered_map<int32_t, int32_t> copied_;
};

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_REFIT_REFIT_TERMS_H_
