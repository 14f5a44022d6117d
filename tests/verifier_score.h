// Verifier scores: the verifier's answers about pairs of programs, compared with plain numbers.
#ifndef MENDEL_TESTS_VERIFIER_SCORE_H_
#define MENDEL_TESTS_VERIFIER_SCORE_H_

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// Largest differences of two programs over many inputs in double precision.
struct NumberGap {
  double relative = 0;     ///< largest |f - g| of an element, relative to its output's largest
                           ///< element; integers count absolutely
  bool undefined = false;  ///< g is infinite or not a number where f is a number
  int64_t elements = 0;    ///< compared
  std::string where;       ///< of the largest
};

/// One list per output.
using WrongBoxes = std::vector<std::vector<Box>>;

/// Inputs are random of several magnitudes, integral, zero, one, alternating and one-hot; in
/// symbolic mode weights differ each time. Stops early at a relative gap above `enough`. The
/// programs must have the same interface. Elements in `ignored` are left out.
NumberGap GapInNumbers(const Graph& f, const Graph& g, WeightMode weights, uint64_t seed,
                       int rounds, double enough, const WrongBoxes* ignored = nullptr);

/// Larger gaps are differences, gaps below the second are rounding; those between are open.
inline constexpr double kSurelyDifferent = 1e-6;
inline constexpr double kSurelyRounding = 1e-10;

enum class Outcome {
  kWitnessed,        ///< proven different, with a witness
  kDifferent,        ///< formally different, the numbers differ, no witness requested or found
  kFormal,           ///< formally different or unproven, the numbers seen agree
  kUnproven,         ///< unproven, the numbers differ
  kHarmless,         ///< equivalent, and the numbers agree everywhere
  kFalseEquivalent,  ///< equivalent - the programs or elements outside the wrong boxes - and the
                     ///< numbers differ
  kFalseWitness,  ///< called different without a witness, or with one that plain evaluation refutes
  kError,
};
inline constexpr size_t kOutcomes = 8;
std::string_view OutcomeName(Outcome outcome);

struct Verification {
  Outcome outcome = Outcome::kError;
  std::string detail;
};

/// Compares f and g (ComparePrograms) and checks the verdict against numbers: equality everywhere,
/// a stated witness at its element, regions in the elements outside them.
Verification ScorePair(const Graph& f, const Graph& g, WeightMode weights, uint64_t seed);

/// Counts of outcomes by kind of mutation.
struct ScoreTable {
  std::map<std::string, std::array<int64_t, kOutcomes>, std::less<>> rows;
  void Add(std::string_view kind, Outcome outcome) {
    ++rows[std::string(kind)][static_cast<size_t>(outcome)];
  }
  int64_t Total(Outcome outcome) const;
  int64_t Total() const;
  /// A Markdown table.
  std::string Print() const;
};

}  // namespace mendel

#endif  // MENDEL_TESTS_VERIFIER_SCORE_H_
