// A first look at two programs that may differ: one evaluation in double precision, before hours of
// proofs are tried.
//
// It decides nothing. It says where a witness (witness.h) is likely to be found at once, and
// whether a caller who counts wrong elements may expect any element to be right.
#ifndef MENDEL_VERIFIER_WITNESS_FIRST_LOOK_H_
#define MENDEL_VERIFIER_WITNESS_FIRST_LOOK_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/witness/witness.h"

namespace mendel {

struct FirstLook {
  /// The element where the outputs are farthest apart, if they differ by more than rounding does.
  /// FindWitnesses with the same seed tries the inputs that were looked at first. Nothing also
  /// where the evaluation would be too much work.
  std::optional<WitnessQuery> suspect;
  /// Some output differs by far more than rounding: a proof that the programs are equal will not be
  /// found.
  bool far_apart = false;
  /// The programs differ in stored tensors alone, which stand for no constants: no axiom applies to
  /// what differs.
  bool only_weights_differ = false;
  bool all_apart = false;  ///< every element of every output differs by more than rounding
  /// Elements of all outputs that differ by so much that no axiom makes them equal.
  int64_t elements_far_apart = 0;
};

/// One program with other weights: numbers that stand for no constant, unlike literals.
bool OnlyWeightsDiffer(const Graph& f, const Graph& g);

/// f and g as for FindWitnesses. Programs that are alike but for numbers and attributes round
/// alike: there any difference counts.
absl::StatusOr<FirstLook> LookForDifference(const Graph& f, const Graph& g, uint64_t seed);

/// A witness among the inputs that were looked at, for the suspected element or, where that costs
/// no more, for any one. Nothing where `look` suspects none.
absl::StatusOr<std::optional<Witness>> WitnessOfLook(const Graph& f, const Graph& g,
                                                     const FirstLook& look, WitnessOptions options);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WITNESS_FIRST_LOOK_H_
