// The verdict on two models, as `mendel verify A B` reports it: for programs (JSON,
// docs/verify.md), for continuous integration (JUnit) and for people. All three say the same.
#ifndef MENDEL_CLIENT_VERDICT_H_
#define MENDEL_CLIENT_VERDICT_H_

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/exit_codes.h"
#include "client/symbolic_sizes.h"
#include "optimizer/refit/refit.h"
#include "verifier/compare.h"
#include "verifier/regions/explain_regions.h"

namespace mendel {

/// Version of the JSON form. Members may be added within a version; none changes its meaning or
/// goes.
inline constexpr std::string_view kVerdictSchema = "mendel.verify/1";

/// A literal stands for a constant only where it is correctly rounded.
inline constexpr double kRoundedUlps = 0.5;

struct PairVerdict {
  std::string file_a;
  std::string file_b;
  CompareReport report;
  std::vector<std::string> notes;  ///< matched by position, or not searched
  WeightMode weights = WeightMode::kExact;
  uint64_t seed = 0;
  /// Files of the witness's inputs, by input name; keyed by the positions of output and box.
  std::map<std::pair<size_t, size_t>, std::map<std::string, std::string>> witness_files;
  /// Exact mode, not equivalent: are they once folded constants are exact?
  std::optional<RefitReport> refit;
  /// Sizes of symbolic dimensions that the verdict holds for; none where shapes were given.
  std::vector<Sizes> sizes;
  double fold_tolerance = 16;  ///< ulps
  bool accept_refit = false;   ///< the caller named a tolerance: within it the answer is good
  /// Where the borders of regions come from, when the caller asked.
  std::optional<std::vector<ExplainedOutput>> regions;
};

/// "equivalent", "equivalent-after-refit", "partial", "different" or "unproven".
std::string_view VerdictWord(const PairVerdict& verdict);
ExitCode ExitCodeOf(const PairVerdict& verdict);

/// The object of docs/verify.md.
nlohmann::ordered_json VerdictJson(const PairVerdict& verdict);

/// Lines without newlines, the verdict first.
std::vector<std::string> VerdictLines(const PairVerdict& verdict);

/// One test suite with a test case an output. "no" is a failure, undecided an error.
std::string VerdictJUnit(const PairVerdict& verdict);

}  // namespace mendel

#endif  // MENDEL_CLIENT_VERDICT_H_
