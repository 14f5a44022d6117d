// The translation's inside: reads the element of a value at given forms, as a sum of terms.
#ifndef MENDEL_MUTATOR_INDEX_READER_H_
#define MENDEL_MUTATOR_INDEX_READER_H_

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "mutator/index/expression.h"
#include "mutator/index/leaf.h"

namespace mendel {

using Terms = std::vector<IndexTerm>;
using Forms = std::vector<Affine>;

/// The extent to which products of sums are multiplied out.
enum class Expansion {
  kViews,     ///< operands of products are leaves unless they are views
  kOneTerm,   ///< operands may be products, and sums of which at most one term is no weight
  kAllTerms,  ///< operands may be any sums
};

/// Reads values of one graph at affine positions. Invariant of every Read: the terms are the
/// value's element where all positions are inside, and zero elsewhere; an operator for which that
/// cannot be had is read as a leaf.
class ExpressionReader {
 public:
  /// `closed` nodes are leaves whatever they are.
  ExpressionReader(const Graph& graph, const std::vector<bool>& weights,
                   const std::set<int32_t>& closed, int max_nodes,
                   Expansion expansion = Expansion::kViews)
      : expansion(expansion),
        graph_(graph),
        weights_(weights),
        closed_(closed),
        max_nodes_(max_nodes) {}

  Terms Read(ValueId value, const Forms& at);
  Terms ReadLeaf(ValueId value, const Forms& at);
  /// Read, if that is one factor of something outside (a view); else a leaf.
  Factor ReadOperand(ValueId value, const Forms& at);
  /// An operand of a product as a sum of products, as far as `expansion` and the limits allow.
  Terms ReadFactors(ValueId value, const Forms& at);
  /// `term` (sums, no factors yet) times one term of every operand, for all choices of terms.
  Terms MultiplyOut(const IndexTerm& term, const std::vector<Terms>& operands);
  Factor LeafFactor(const IndexLeaf& leaf, const Forms& at);
  /// A sum over `extent` values, as one iterator or as the digits that were wished for.
  Affine NewSum(IndexTerm& term, int64_t extent);
  /// `terms` where `at` lies inside `shape`, zero elsewhere; nullopt when a term that is no weight
  /// would need a guard.
  std::optional<Terms> Guarded(Terms terms, const Shape& shape, const Forms& at);
  bool IsWeightTerm(const IndexTerm& term) const;
  bool IsWeight(ValueId value) const { return weights_[static_cast<size_t>(value.node)]; }
  /// The value whose operator is being read.
  ValueId CurrentValue() const { return current_; }

  const Graph& graph() const { return graph_; }
  const Shape& shape(ValueId value) const { return graph_.type(value).shape; }
  bool Inside(const Affine& form, int64_t extent) const {
    return RangeOf(form, extents).Within(0, extent);
  }
  /// Notes that the reading would go further if `iterator` were split into (extent / factor,
  /// factor).
  void WishSplit(const Affine& form, int64_t factor);

  const Expansion expansion;
  Extents extents;
  std::vector<IndexLeaf> leaves;
  std::set<int32_t> inlined;
  std::optional<std::pair<Iterator, int64_t>> wish;
  bool has_product = false;
  /// A coefficient overflowed, or too many reads: nothing that was read may be used.
  bool too_large = false;
  bool has_square = false;  ///< a sum was multiplied by itself: the expansion can cancel
  /// Inner extents of sums that are split, by the number of the sum.
  std::map<int, int64_t> sum_splits;
  /// Numbers of the sums, by iterator.
  std::map<Iterator, int> sum_numbers;

 private:
  /// A mark is a state of the lists that readings extend, for going back to it.
  struct Mark {
    size_t inlined, leaves;
    bool has_product, has_square;
  };
  Mark Now() const;
  void GoBack(const Mark& mark);
  std::optional<Terms> Inline(ValueId value, const Forms& at);

  const Graph& graph_;
  const std::vector<bool>& weights_;
  const std::set<int32_t>& closed_;
  const int max_nodes_;
  std::vector<int32_t> in_order_;  ///< of `inlined`
  size_t depth_ = 0;               ///< depth of operands in operands of products
  int sums_ = 0;
  int reads_ = 0;
  ValueId current_;
};

/// True where an operator of this name can be part of a site.
bool HasTranslation(std::string_view op);

/// The terms of one operator, nullopt when it must be a leaf here.
using ReadOp = std::optional<Terms> (*)(ExpressionReader& reader, const Node& node,
                                        const Forms& at);
std::optional<Terms> ReadConv(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadConvTranspose(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadMatMul(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadEinsum(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadMul(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadAdd(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadReduceSum(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadReduceMean(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadReduceSumSquare(ExpressionReader& reader, const Node& node,
                                         const Forms& at);
std::optional<Terms> ReadAveragePool(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadBatchNormalization(ExpressionReader& reader, const Node& node,
                                            const Forms& at);
std::optional<Terms> ReadSub(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadNeg(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadDiv(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadExpand(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadReshape(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadTranspose(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadSlice(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadPad(ExpressionReader& reader, const Node& node, const Forms& at);
std::optional<Terms> ReadConcat(ExpressionReader& reader, const Node& node, const Forms& at);

/// Positions in an operand that broadcasts into a result read at `at`.
Forms BroadcastForms(const Shape& operand, const Shape& result, const Forms& at);

/// Terms that are equal but for constants in arithmetic progression, as one that is affine in
/// `step`; the j-th of `pieces` is the value at step = j. Reduction iterators are matched by their
/// order. nullopt when they are not.
std::optional<IndexTerm> RollTerms(const Terms& pieces, Iterator step, const Extents& extents);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_READER_H_
