// Rounding noise: how far a program's values may move when it is computed in its own dtypes.
//
// A difference over the reals that float evaluation hides is no difference to a user. The estimate
// is Monte Carlo arithmetic (Parker, 1997): every operator's result, and the operands of operators
// that sum many terms, are moved by one unit of roundoff in a random direction and rounded into
// their dtype, unless the exact result is a number of the dtype already. The noise of an element is
// the largest distance from its value without rounding in a few such runs.
#ifndef MENDEL_VERIFIER_WITNESS_FLOAT_NOISE_H_
#define MENDEL_VERIFIER_WITNESS_FLOAT_NOISE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/evaluate.h"
#include "graph/graph.h"

namespace mendel {

/// For each output, in order, the noise of each element, row-major; infinite where an evaluation
/// overflows. `exact`: the outputs that Evaluate gives. A run costs one evaluation, and two to
/// three where operands move, too: without them, sums of many terms seem too sharp.
absl::StatusOr<std::vector<std::vector<double>>> FloatNoise(const Graph& graph,
                                                            std::span<const HostValue> inputs,
                                                            std::span<const HostValue> exact,
                                                            uint64_t seed, int runs,
                                                            bool moves_operands);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WITNESS_FLOAT_NOISE_H_
