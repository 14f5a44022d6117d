// The order of contraction: products of many factors as stages of products of two.
//
//   y[i] = sum j,k: a[i,j] * b[j,k] * c[k]     T[j] = sum k: b[j,k] * c[k];  y[i] = sum j: a[i,j] *
//   T[j]
//
// Exact dynamic programming over the subsets of a term's factors. A subset becomes a tensor over
// the iterators that something outside of it uses; positions that are used together only, such as p
// + k, stay one dimension. Subsets of weights are computed when a plan is loaded and cost nothing;
// one of more than 64 MiB is not made. Source: matrix chains and einsum paths (Pfeifer et al.
// 2014).
#ifndef MENDEL_MUTATOR_INDEX_CONTRACT_H_
#define MENDEL_MUTATOR_INDEX_CONTRACT_H_

#include <vector>

#include "mutator/index/expression.h"
#include "mutator/predictor.h"

namespace mendel {

inline constexpr size_t kMostContracted = 10;  ///< factors of a term

/// Every term of every stage as products of at most two factors. `weights`: an entry a leaf. Terms
/// of more than kMostContracted factors stay as they are.
Program OrderContractions(const Program& program, const std::vector<bool>& weights,
                          const Predictor& predictor);

/// For every tensor of `program`: does it depend on weights only?
std::vector<bool> WeightTensors(const Program& program, const std::vector<bool>& weights);

/// Predicted seconds of a term in its best order. `weights`: an entry a tensor.
double TermSeconds(const Program& program, const IndexExpression& stage, const IndexTerm& term,
                   const std::vector<bool>& weights, const Predictor& predictor);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_CONTRACT_H_
