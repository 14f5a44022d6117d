// Witnesses: concrete inputs on which two programs provably compute different numbers
// (docs/verifier.md, "Witnesses").
//
// A formal difference is not always a difference of numbers: random oracles separate relu(2x) from
// 2 relu(x). A "no" is therefore only reported with inputs, an output element and rigorous
// enclosures of both values that do not meet. Candidates come from double evaluation; the
// enclosures from ball arithmetic (base/ball.h), whose precision is raised until they part or time
// is up.
#ifndef MENDEL_VERIFIER_WITNESS_WITNESS_H_
#define MENDEL_VERIFIER_WITNESS_WITNESS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace mendel {

/// Both values are exact up to `error_*`: |true - value| <= error over the reals, weights being the
/// numbers that are stored. The errors include the rounding to double, so that gaps smaller than
/// that show in `gap` alone.
struct Witness {
  std::vector<Tensor> inputs;  ///< in the order of f.inputs(), in their own dtypes, so that any
                               ///< runtime can be given them
  Shape element;               ///< index of the output element
  double value_f = 0;
  double value_g = 0;
  double error_f = 0;
  double error_g = 0;
  double gap = 0;  ///< |f - g| is at least this (0 when that is too small for a double, though it
                   ///< is not zero)
  /// One side is a finite number, the other is infinite or NaN for certain; that side's value is
  /// NaN here, and errors and gap say nothing of it.
  bool undefined = false;
  int precision_bits = 0;  ///< of the ball arithmetic that parted them
};

/// The box of an output for which a witness is wanted.
struct WitnessQuery {
  int output = 0;  ///< position in f.outputs() and g.outputs()
  Box box;
};

struct WitnessOptions {
  uint64_t seed = 1;
  Deadline deadline = Deadline::Never();
  int max_candidates = 512;  ///< inputs tried a query: random of several magnitudes, thresholds,
                             ///< gradient steps on the gap; fewer where one is much work
  int max_precision_bits = 4096;
};

struct WitnessAnswer {
  std::optional<Witness> witness;
  /// The reason why there is no witness: what was tried, the largest gap seen, and what could not
  /// be enclosed (an operator without ball meaning).
  std::string reason;
  /// The largest gap seen in double precision that rounding in the programs' own dtypes hides.
  double hidden_gap = 0;
  int evaluations = 0;  ///< in balls, shared with other queries or not
};

/// One answer a query, in order. Inputs and outputs of f and g are matched by position and have
/// equal types (InvalidArgument otherwise). In both graphs every weight has its stored value. A
/// constant that one side lacks is simply a number.
absl::StatusOr<std::vector<WitnessAnswer>> FindWitnesses(const Graph& f, const Graph& g,
                                                         std::span<const WitnessQuery> queries,
                                                         const WitnessOptions& options);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WITNESS_WITNESS_H_
