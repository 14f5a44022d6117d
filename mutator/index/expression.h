// Index expressions: what a subprogram of linear operators computes, without saying how. The manual
// of mutator/index/.
//
//   y[i0, i1, ...] = sum of terms;   a term = sum over its reduction iterators of a product of
//   factors; a factor = T[f0, f1, ...], every f an affine form of iterators divided by a divisor (1
//   but for transposed convolutions).
//
// A factor is zero where a form is no whole number or lies outside the tensor: this one guard is
// all padding there is, so a bound may be relaxed wherever the guard makes the additional positions
// zero, and tightened to where it does not.
//
//   Conv            y[n,o,p] = sum over c,k:  w[o,c,k] * x[n,c, s*p + d*k - pad]
//   ConvTranspose   y[n,o,q] = sum over c,k:  w[c,o,k] * x[n,c, (q + pad - d*k) / s]
//   MatMul          y[b,i,j] = sum over k:    a[b,i,k] * c[b,k,j]
//   banded product  y[b,i,w] = sum over k:    a[b,i,k] * c[b, i + w - W, k]
//
// The life of an expression: translate.h makes it from a graph; the derivations (derive.h) split,
// merge, reorder, relax, stage and skew it; realize.h matches what comes out with operators;
// generate.h searches and ranks. Nothing here is trusted: what is realized is an ordinary mutant
// that the verifier decides on.
//
// Programs are values: derivations take one and return new ones. Not shared between threads while
// being changed.
#ifndef MENDEL_MUTATOR_INDEX_EXPRESSION_H_
#define MENDEL_MUTATOR_INDEX_EXPRESSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/types.h"
#include "mutator/index/affine.h"

namespace mendel {

/// A position along one dimension: affine / divisor.
struct IndexForm {
  Affine affine;
  int64_t divisor = 1;
  auto operator<=>(const IndexForm&) const = default;
};

/// T[index...], zero where an index is no whole number or outside the tensor.
struct Factor {
  int tensor = 0;  ///< position in Program::Tensors
  std::vector<IndexForm> index;
  auto operator<=>(const Factor&) const = default;
};

struct IndexTerm {
  std::vector<Iterator> sums;  ///< reduction iterators
  std::vector<Factor> factors;
  /// The rational number that the product is multiplied by; the denominator is positive.
  int64_t numerator = 1;
  int64_t denominator = 1;
  auto operator<=>(const IndexTerm&) const = default;
};

/// One dimension of the result: row-major in its iterators, of which positions [begin, begin +
/// extent) are wanted.
struct OutputDim {
  std::vector<Iterator> iterators;
  int64_t begin = 0;
  int64_t extent = 1;
};

/// One stage: defines a tensor.
struct IndexExpression {
  Extents extents;  ///< extents of all iterators, also of those no longer used
  std::vector<OutputDim> outputs;
  std::vector<IndexTerm> terms;

  Iterator NewIterator(int64_t extent);
  int64_t extent(Iterator iterator) const { return extents[static_cast<size_t>(iterator)]; }
  /// All output iterators, outermost first.
  std::vector<Iterator> OutputIterators() const;
  Shape OutputShape() const;
};

/// Stages that may read the leaves and the stages before them; the last one is the result.
struct Program {
  std::vector<Shape> leaves;
  std::vector<IndexExpression> stages;

  /// Shape of tensor `tensor`: leaves first, then stages.
  Shape TensorShape(int tensor) const;
  int StageTensor(size_t stage) const { return static_cast<int>(leaves.size() + stage); }
};

/// Replaces `iterator` in every index of the term.
void Substitute(IndexTerm& term, Iterator iterator, const Affine& value);

/// One occurrence of an iterator in a term.
struct Occurrence {
  size_t factor = 0;
  size_t dim = 0;
  int64_t coefficient = 0;
  /// The form is the iterator itself, and the tensor's extent at most the iterator's.
  bool alone = false;
};
std::vector<Occurrence> OccurrencesOf(const IndexTerm& term, Iterator iterator);
bool Uses(const Factor& factor, Iterator iterator);
/// True when, beyond the extent that the iterator has, some factor is zero: the range may then be
/// relaxed upwards.
bool IsGuarded(const Program& program, const IndexExpression& expression, const IndexTerm& term,
               Iterator iterator);

/// "y[i0,i1] = sum i2: T0[i0,i2]*T1[i2,i1]" a stage, with extents.
std::string ProgramString(const Program& program);
/// ProgramString after renaming iterators and sorting terms: equal for programs that differ in such
/// choices only (mostly: what it does not recognize as equal is only searched twice).
std::string CanonicalKey(const Program& program);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_EXPRESSION_H_
