// Sums of linear branches of one value, merged in one contraction: the training form of RepVGG's
// blocks (3x3 + 1x1 + identity), low-rank additions to a matrix.
#ifndef MENDEL_OPTIMIZER_REFIT_REFIT_SUMS_H_
#define MENDEL_OPTIMIZER_REFIT_REFIT_SUMS_H_

#include <optional>

#include "optimizer/refit/refit_terms.h"

namespace mendel {

/// Is `term` one convolution or matrix product with a weight, plus a weight or nothing?
bool IsOneContraction(const RefitTerms& terms, RefitTerm term);

/// A sum of at least two convolutions or matrix products of one value, of multiples of that value
/// and of weights, as one contraction: kernels are padded to the largest one, the value itself is
/// a kernel with a one at its place. Nullopt where `sum` is no such sum. Adds terms.
std::optional<RefitTerm> MergedBranches(RefitTerms& terms, RefitTerm sum);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_REFIT_REFIT_SUMS_H_
