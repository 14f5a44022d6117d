// Measured errors of the two programs of a refit.
#ifndef MENDEL_OPTIMIZER_REFIT_REFIT_ERRORS_H_
#define MENDEL_OPTIMIZER_REFIT_REFIT_ERRORS_H_

#include <vector>

#include "optimizer/refit/refit.h"

namespace mendel {

/// Both programs on the backend against `a` in float64, one entry an output of `a` (matched by
/// name).
absl::StatusOr<std::vector<RefitError>> MeasureRefitErrors(const Graph& a, const Graph& b,
                                                           const RefitOptions& options);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_REFIT_REFIT_ERRORS_H_
