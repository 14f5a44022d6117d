// Two models in, a verdict out: `mendel verify A.onnx B.onnx`.
//
// Order of attempts: certification of the programs as given (every element, bound stated), then by
// axioms between cut points (sweep.h), both with equal weights as symbols and, in exact mode, with
// their values; where all say no, the exact regions (Localize), and for every wrong box a witness
// (witness.h). A "no" without a witness is `unproven`. Where one random input reports the programs
// apart after the first "no" (first_look.h), a witness is sought at once, and one that is found
// ends the proofs.
#ifndef MENDEL_VERIFIER_COMPARE_H_
#define MENDEL_VERIFIER_COMPARE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/verifier.h"
#include "verifier/witness/witness.h"

namespace mendel {

/// B with the inputs' and outputs' names and order of A, and how they were matched.
struct MatchedModel {
  Graph graph;
  std::map<std::string, std::string> inputs;  ///< A's names to B's
  std::vector<std::string> notes;             ///< one a pair that was matched by position
};

/// Pairs by `names` (A's name to B's), else by name, else - when all the rest has equal types in
/// order - by position. InvalidArgument naming what cannot be matched or differs in shape or dtype.
absl::StatusOr<MatchedModel> MatchInterfaces(const Graph& a, const Graph& b,
                                             const std::map<std::string, std::string>& names);

struct CompareOptions {
  VerifierOptions verifier;  ///< `weights` kExact: stored floats are dyadic rationals; equal
                             ///< tensors of both sides are tried as symbols first
  bool regions =
      true;  ///< wrong boxes exact to the element; otherwise only whether an output has any
  bool cut_points = true;  ///< false: everything is evaluated, the slow second opinion
  /// Called (when set) when equality is not proven: where stored weights differ early, before
  /// axioms are tried, and in the end
  /// (`last`), before regions and witnesses are sought. The programs hold weights that they cut as
  /// pieces (weight_pieces.h). True: the caller has an answer of its own, and the report ends there
  /// as kUnproven.
  std::function<absl::StatusOr<bool>(const Graph& a, const Graph& b, bool last)> before_explaining =
      nullptr;
  WitnessOptions witness;
};

struct ComparedBox {
  Box box;
  std::optional<Witness> witness;
  std::string reason;     ///< why there is no witness
  double hidden_gap = 0;  ///< as WitnessAnswer::hidden_gap
};

struct ComparedOutput {
  std::string name;
  Shape shape;
  int64_t elements = 0;
  int64_t wrong_elements = 0;  ///< formally different
  /// False: elements outside `boxes` are not claimed to be right, or `boxes` is the whole output
  /// though some elements may agree.
  bool regions_known = true;
  std::vector<ComparedBox> boxes;  ///< disjoint
};

/// A tensor of A that no tensor of B equals though everything that it is computed of has an equal
/// in B.
struct DivergentTensor {
  std::string name;
  std::string op;
  Shape shape;
};

/// A weight that both models hold under one name with different bytes.
struct WeightDifference {
  std::string name;
  int64_t elements = 0;
  int64_t differing = 0;
  double largest_ulps = 0;  ///< distance in units of the stored dtype
};

struct CompareReport {
  Verdict verdict = Verdict::kUnproven;
  std::string reason;  ///< of kUnproven
  /// The programs differ formally, and every gap seen is within the rounding of float evaluation;
  /// the largest of them. 0 otherwise.
  double hidden_gap = 0;
  std::vector<std::string> lacking;  ///< operators or axioms that the verifier lacks, by name
  int attempts = 0;  ///< certifications tried: one if a witness of a "no" was found before the next
  double bound_log2 = 0;  ///< of kEquivalent, and of the right elements of kPartial
  std::vector<Draw> draws;
  double degree = 0;
  int64_t segments = 0;
  std::vector<ComparedOutput> outputs;
  std::vector<DivergentTensor> earliest;
  std::vector<WeightDifference> weights;
  std::map<std::string, int> axioms;  ///< how often each was used

  /// Uses of a literal for the constant whose correctly rounded number it is.
  int RoundedConstants() const;
};

/// Inputs and outputs must have equal names and types (MatchInterfaces). Never kDifferent or
/// kPartial without a witness.
absl::StatusOr<CompareReport> ComparePrograms(const Graph& a, const Graph& b,
                                              const CompareOptions& options);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_COMPARE_H_
