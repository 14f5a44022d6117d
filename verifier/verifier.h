// The verifier decides whether two graphs compute the same function, and where they do not. It
// never trusts a rule.
//
// Equality is equality of formal expressions over all inputs and all symbolic weights, decided by
// random evaluation in GF(p) (docs/verifier.md; docs/verification.md is the contract). Three tiers:
// Screen (every candidate, cheap, may only reject), Localize (wrong boxes, exact to the element),
// Certify (a delivered plan, every output element, bound stated). All functions are pure and
// thread-safe.
#ifndef MENDEL_VERIFIER_VERIFIER_H_
#define MENDEL_VERIFIER_VERIFIER_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "graph/graph.h"

namespace mendel {

enum class Verdict { kEquivalent, kPartial, kDifferent, kUnproven };
std::string_view VerdictName(Verdict verdict);

/// The meaning of float constants. kSymbolic: those with a symbol are random tensors,
/// equal where the name is equal. kExact: every stored float is the dyadic rational that it is.
enum class WeightMode { kSymbolic, kExact };

/// One random test: everything drawn in it follows from these 192 bits.
struct Draw {
  uint64_t prime = 0;
  std::array<uint64_t, 2> key{};
  bool operator==(const Draw&) const = default;
};

/// The definedness that Certify checks (definedness.h).
enum class DefinednessCheck : uint8_t {
  kPlan,  ///< where an element of the original is finite, the plan's is
  kBoth,  ///< and the reverse
  kNone   ///< the caller checks it
};

struct VerifierOptions {
  WeightMode weights = WeightMode::kSymbolic;
  /// log2 of the accepted probability of a wrong "equivalent".
  double target_log2 = -80;
  int max_tests = 16;
  Deadline deadline = Deadline::Never();
  /// Seed of the draws of Screen and Localize. Certify draws from the operating system after both
  /// graphs are fixed, unless `fixed_draws` is set (tests, replay).
  uint64_t seed = 1;
  std::vector<Draw> fixed_draws = {};
  /// Certify makes at least this many tests where congruence alone does not decide.
  int min_tests = 1;
  DefinednessCheck definedness = DefinednessCheck::kPlan;
};

/// Verdict on one output.
struct OutputReport {
  std::string name;
  Shape shape;
  int64_t wrong_elements = 0;
  /// Disjoint, covering exactly the wrong elements.
  std::vector<Box> wrong;
};

struct VerifierReport {
  Verdict verdict = Verdict::kUnproven;
  /// Operators or axioms that the verifier lacks, for `kUnproven`.
  std::string reason;
  std::vector<OutputReport> outputs;
  double bound_log2 = 0;  ///< log2 of the probability that this report is wrong somewhere
  int tests = 0;
  int64_t probes = 0;                  ///< output elements evaluated
  std::vector<std::string> fallbacks;  ///< outputs compared element by element, with the reason
};

/// The certificate of a delivered plan (docs/verification.md, "Certificates").
struct Certificate {
  int verifier_version = 0;
  std::string original_hash;  ///< GraphHash of both graphs
  std::string plan_hash;
  WeightMode weights = WeightMode::kSymbolic;
  std::vector<Draw> draws;
  double degree = 0;           ///< largest degree of a segment's cleared difference
  double log2_norm = 0;        ///< largest log2 of its L1 norm
  double oracle_operands = 0;  ///< largest number of oracle operands in one segment
  int64_t elements = 0;        ///< output elements and cut elements compared, each (or one in a
                               ///< combination) in every test
  int64_t segments = 0;        ///< obligations of the final partition
  int64_t shared_nodes = 0;    ///< nodes equal by congruence, not evaluated
  int rounds = 1;              ///< partitions tried; multiplies the bound
  double bound_log2 = 0;
  /// Names of the rewrites before the comparison; empty: both programs as given. First
  /// "masked softmax" or "canonical form", followed by the axioms used (axioms/rewritten_pair.h).
  /// "parts of values" alone or behind them: cut where the plan computes a part of a value
  /// (certify/part_cuts.h). Definedness is always decided of the programs as given.
  std::vector<std::string> axioms;
};

/// 2: domains know the signs of stored weights in exact mode. 3: primes modulo which 2 is a square.
/// 4: slices of linear operators are compared in one random combination (contraction.h). 5: oracles
/// of opaque operators follow from the boxes that an element reads (opaque.h); plans are certified
/// without axioms. 6: definedness by output element (definedness.h). 7: the bound counts the
/// oracle operands of one element alone. A certificate may name axioms and parts of values
/// (Certificate::axioms); older versions refuse names that they do not know.
inline constexpr int kVerifierVersion = 7;

/// Identity of a graph to the verifier: text without node names; in exact mode with the weights'
/// bytes.
std::string GraphHash(const Graph& graph, WeightMode weights);

/// False when some probed element of some output differs in one test, or the programs do not have
/// the same types. Inputs and outputs are matched by position. A true answer proves nothing. Cost:
/// a few output elements.
absl::StatusOr<bool> ScreenedEqual(const Graph& f, const Graph& g, const VerifierOptions& options);

/// Finds where f and g differ. Inputs and outputs are matched by position and must have equal types
/// (InvalidArgument otherwise).
absl::StatusOr<VerifierReport> Localize(const Graph& f, const Graph& g,
                                        const VerifierOptions& options);

/// Proves that `plan` equals `original` in every element of every output, matched by name.
/// FailedPrecondition with the first wrong output and element when they differ; Unimplemented when
/// it cannot be decided; DeadlineExceeded.
absl::StatusOr<Certificate> Certify(const Graph& original, const Graph& plan,
                                    const VerifierOptions& options);

/// Checks a certificate from the two graphs alone: hashes, verifier version, every draw evaluated
/// again, bound recomputed.
absl::Status Replay(const Graph& original, const Graph& plan, const Certificate& certificate);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_VERIFIER_H_
