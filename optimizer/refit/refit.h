// The verdict `equivalent-after-refit`: is B the program A with weights folded in floating point?
//
// Simplifiers fold batch norms, scales and products of weights in float32, so that their result is
// never exactly equal to what they were given. Refit asks instead: with each stored element of one
// program replaced by the value that the other one folds to (in float64, by an expression over its
// own constants), are the two identical, and how far is each replacement from what is stored? Two
// steps, of which only the second is trusted:
//   1. both programs are brought into one canonical form with expressions of weights kept symbolic,
//   and compared from the outputs
//      up; a stored constant that faces an expression of two or more constants in a linear place
//      becomes a candidate;
//   2. the verifier proves (Certify) that the program with the candidates' expressions in place
//   equals the other one for all values
//      of the weights, tensors of equal dtype, shape and bytes being one weight.
// Exponents, thresholds, indices and other constants that do not enter linearly are never replaced.
// An element that two places would replace by different values makes the refit fail.
//
// It says nothing about |A - B|: the measured errors of both are reported beside it.
#ifndef MENDEL_OPTIMIZER_REFIT_REFIT_H_
#define MENDEL_OPTIMIZER_REFIT_REFIT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// One stored tensor that takes folded values.
struct RefitTensor {
  std::string name;  ///< the symbol; a literal's value for constants without name
  TensorType type;
  int64_t elements = 0;
  int64_t replaced = 0;   ///< elements that a folded value stands for
  int64_t differing = 0;  ///< of these: what is stored is not the folded value, correctly rounded
  /// Largest |stored - folded| in units in the last place that the tensor's dtype has at the folded
  /// value or, where the folded sum cancels, at the sum of its terms' magnitudes: what rounding in
  /// any order may cost. This is held against the tolerance.
  double largest_ulps = 0;
  double largest_value_ulps = 0;  ///< the same at the folded value alone; large where sums cancel
  std::string expression;  ///< over the other program's constants, e.g. "conv.weight * bn.scale /
                           ///< sqrt(bn.var + 1e-05)"
};

/// Measured over random and edge inputs as the numeric gate does (numeric_gate.h): errors of both
/// programs, run by the backend, against A in float64, relative to A's largest output.
struct RefitError {
  std::string output;
  double a_max = 0;
  double a_p999 = 0;
  double b_max = 0;
  double b_p999 = 0;
};

enum class RefitSide : uint8_t { kA, kB };

struct RefitReport {
  /// Identical after refit, and every replacement lies within the tolerance.
  bool applies = false;
  /// Proven identical after refit, whatever the distances.
  bool identical = false;
  std::string reason;                  ///< of not `applies`
  RefitSide refitted = RefitSide::kB;  ///< the side whose constants were replaced: the folded one
  std::vector<RefitTensor> tensors;    ///< in the folded program's order
  double largest_ulps = 0;             ///< over all tensors
  Graph original;                      ///< the unfolded program with constants named by content
  Graph refitted_graph;  ///< the folded program with expressions over the constants of `original`
  Certificate certificate;  ///< of both, symbolic weights; meaningful when they are identical
  std::vector<RefitError> errors;  ///< one an output; empty when not measured
};

struct RefitOptions {
  double tolerance_ulps = 16;
  /// For the proof; `weights` is ignored.
  VerifierOptions verifier;
  /// Errors are measured only for programs that are identical after refit.
  bool measure_errors = true;
  std::string_view backend = "cpu";  ///< "reference" when this one is not there
  uint64_t seed = 1;
  /// Edge inputs are measured while the float64 evaluation needs fewer flops than this in all.
  double edge_flops = 4e9;
};

/// Inputs and outputs of `a` and `b` must have equal names and types (InvalidArgument otherwise).
/// Tries B as the folded side, then A. A refit that does not apply is a report with a reason, not
/// an error.
absl::StatusOr<RefitReport> Refit(const Graph& a, const Graph& b, const RefitOptions& options = {});

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_REFIT_REFIT_H_
