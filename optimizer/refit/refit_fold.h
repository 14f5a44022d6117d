// The canonical form of a refit: what follows or precedes a contraction with stored weights, and is
// linear, moves into the weights.
//
//   x * m          into the Conv, ConvTranspose or MatMul that computes x; through views, sums and
//   products by other weights conv(x * m)    and matmul(x * m, w): m into w;  conv(x + t) without
//   padding, matmul(x + t, w): t behind it matmul(matmul(x, v), w) = matmul(x, v w);  slices of a
//   contraction's channels: slices of its weights BatchNormalization, Sub, Neg, Div by weights: a
//   product and a sum;  a bias: a sum behind the contraction a MatMul by a matrix works on a
//   matrix; views are composed and stand behind what they commute with
//
// Rewrites ignore how often a value is read: the form serves to find candidates and is never run.
// Nothing here is trusted.
#ifndef MENDEL_OPTIMIZER_REFIT_REFIT_FOLD_H_
#define MENDEL_OPTIMIZER_REFIT_REFIT_FOLD_H_

#include <optional>
#include <vector>

#include "optimizer/refit/refit_terms.h"

namespace mendel {

class RefitFolder {
 public:
  explicit RefitFolder(RefitTerms& terms) : t_(terms) {}

  /// Canonical terms of the outputs of `node`, whose operands have the canonical terms `inputs`.
  std::vector<RefitTerm> Fold(const Node& node, const std::vector<RefitTerm>& inputs);

 private:
  std::optional<RefitTerm> FoldOne(const Node& node, const std::vector<RefitTerm>& inputs);

  // Weights only (refit_fold.cc). Zeros and ones disappear.
  std::vector<RefitTerm> WeightNode(const Node& node, const std::vector<RefitTerm>& inputs);
  RefitTerm Scaled(RefitTerm weight, RefitTerm factor);
  RefitTerm Sum(RefitTerm a, RefitTerm b);
  RefitTerm Negated(RefitTerm weight);
  RefitTerm Inverse(RefitTerm weight);
  /// `m` reshaped to rank `rank` with its elements along `dim` (-1: one element).
  RefitTerm Spread(RefitTerm m, size_t rank, int64_t dim);
  /// The one dimension of a value of shape `of` that `m` varies along, -1 for one element; nullopt
  /// if there are more.
  std::optional<int64_t> Along(RefitTerm m, const Shape& of) const;

  // A value that depends on inputs, and a weight.
  RefitTerm Times(RefitTerm x, RefitTerm m);
  RefitTerm Plus(RefitTerm x, RefitTerm t);
  std::optional<RefitTerm> BehindView(RefitTerm x, RefitTerm m, bool product);
  RefitTerm BatchNorm(const Node& node, const std::vector<RefitTerm>& inputs);

  // Views (refit_views.cc).
  RefitTerm View(const Node& view, RefitTerm x);
  RefitTerm Transposed(RefitTerm x, const Ints& perm);
  RefitTerm Sliced(RefitTerm x, const Ints& starts, const Ints& ends);
  std::optional<RefitTerm> SlicedContraction(RefitTerm x, const Ints& starts, const Ints& ends,
                                             int64_t dim);
  std::vector<RefitTerm> Pieces(const Node& split, RefitTerm x);
  /// An operator that works element by element, on operands of one shape, of which some are views:
  /// the view of what it makes of the operands' own elements.
  std::optional<RefitTerm> Elementwise(const Node& node, const std::vector<RefitTerm>& inputs);
  RefitTerm ElementwiseOf(const Node& node, std::vector<RefitTerm> operands);
  /// The dimension of a Reshape's or Transpose's operand that dimension `dim` of its result is; -2
  /// when there is none.
  int64_t DimBefore(RefitTerm view, int64_t dim) const;

  // Contractions (refit_contractions.cc).
  std::optional<RefitTerm> ScaledContraction(RefitTerm x, RefitTerm m);
  RefitTerm Convolution(const Node& node, const std::vector<RefitTerm>& inputs);
  RefitTerm ConvolutionOf(const Node& node, RefitTerm x, RefitTerm w);
  RefitTerm ShiftOf(const Node& conv, RefitTerm t, RefitTerm w);
  RefitTerm TransposedConvolutionOf(const Node& node, RefitTerm x, RefitTerm w);
  /// The weights of a grouped contraction times one factor an input or output channel; `dim` is
  /// their dimension in `w`.
  RefitTerm ScaledByGroup(RefitTerm w, RefitTerm factor, int64_t groups, size_t dim);
  RefitTerm Product(RefitTerm a, RefitTerm b);
  RefitTerm MatrixProduct(RefitTerm x, RefitTerm w);

  RefitTerms& t_;
  int depth_ = 0;
};

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_REFIT_REFIT_FOLD_H_
