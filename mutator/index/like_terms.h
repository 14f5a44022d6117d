// Like terms: products with the same factors that move are added up before they are multiplied.
//
//   x*v + x*w          x * (v + w)         kernels are padded and shifted to a common window, x
//   alone
//                                          is a product with the identity matrix
//   x*w + y*w          (x + y) * w
//   v + w              one constant map, stored over the iterators that it depends on only
//
// Terms are combined while the predicted seconds fall. Source: RepVGG (Ding et al. 2021).
#ifndef MENDEL_MUTATOR_INDEX_LIKE_TERMS_H_
#define MENDEL_MUTATOR_INDEX_LIKE_TERMS_H_

#include <vector>

#include "graph/graph.h"
#include "mutator/index/translate.h"
#include "mutator/predictor.h"

namespace mendel {

/// Combines the terms of the site's only stage; may add leaves and stages. `weights`: for every
/// node of `graph`, does it depend on weights only?
IndexSite CombineLikeTerms(const Graph& graph, const IndexSite& site,
                           const std::vector<bool>& weights, const Predictor& predictor);

/// Sums over iterators that no factor uses, as coefficients.
void DropUnusedSums(IndexExpression& stage);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_LIKE_TERMS_H_
