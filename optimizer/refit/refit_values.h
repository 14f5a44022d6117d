// Values of weight expressions in float64, and how large the terms were that they are sums of.
#ifndef MENDEL_OPTIMIZER_REFIT_REFIT_VALUES_H_
#define MENDEL_OPTIMIZER_REFIT_REFIT_VALUES_H_

#include "graph/evaluate.h"
#include "optimizer/refit/refit_terms.h"

namespace mendel {

/// `magnitude` is the expression with absolute values in place of all terms of sums: |a| + |b| for
/// a - b. Rounding errors of any order of summation are proportional to it, not to a value that
/// cancels.
struct FoldedValue {
  HostValue value;
  HostValue magnitude;
};

/// `expression` must be a weight. Memory: both of every intermediate that is still to be read.
FoldedValue EvaluateWeights(const RefitTerms& terms, RefitTerm expression);

/// Distance between neighboring values of a floating-point dtype at `magnitude` (denormals
/// included).
double UlpAt(DType dtype, double magnitude);

/// |stored - value| in units of `dtype` at max(|value|, magnitude): 0 when equal, infinite when
/// only one is finite.
double UlpDistance(DType dtype, double stored, double value, double magnitude);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_REFIT_REFIT_VALUES_H_
