// The generator of operators: derives programs from a site's index expression, without a target in
// mind, and ranks what matches operators. Source of the idea: EinNet (OSDI 2023), section 4.
//
// A breadth-first search over derivations (derive.h), limited in depth, programs and seconds, all
// of which are in the result. Programs equal up to names are searched once; of the graphs, the
// cheapest of each operator histogram (numbers of convolutions, matrix products and other
// operators) is kept, so that the best few differ in kind and not in detail only.
#ifndef MENDEL_MUTATOR_INDEX_GENERATE_H_
#define MENDEL_MUTATOR_INDEX_GENERATE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mutator/index/realize.h"
#include "mutator/index/translate.h"
#include "mutator/predictor.h"

namespace mendel {

struct GenerateOptions {
  int depth = 4;             ///< derivation steps
  int64_t programs = 200;    ///< different programs looked at
  double seconds = 0.5;      ///< wall clock
  size_t keep = 48;          ///< proposals returned
  double worst_ratio = 100;  ///< predicted seconds over those of the site as it is
  double worst_flops = 100;  ///< the same of the arithmetic
};

enum class GenerateStop { kSaturated, kDepth, kPrograms, kSeconds };
std::string_view GenerateStopName(GenerateStop stop);

/// One graph found: it computes the site's last value from its leaves.
struct Proposal {
  Program program;
  RealizeOptions realize;
  std::vector<std::string> steps;  ///< how it was derived
  std::string operator_histogram;  ///< "2 Add, 1 MatMul, .."
  double predicted_seconds = 0;
};

struct GenerateResult {
  std::vector<Proposal> proposals;  ///< cheapest first
  double site_seconds = 0;          ///< predicted, of the site as it is
  int64_t programs = 0;             ///< different programs derived
  int64_t realized = 0;             ///< graphs made
  int depth = 0;                    ///< deepest level that was begun
  GenerateStop stop = GenerateStop::kSaturated;
  std::vector<std::string> faults;  ///< our bugs met on the way (internal errors): nothing was
                                    ///< proposed from those programs
};

/// `subprogram` is the extracted site and `site` its translation.
GenerateResult Generate(const Graph& subprogram, const IndexSite& site, const Predictor& predictor,
                        const GenerateOptions& options);

/// Counts of the operators that run: "2 Add, 1 MatMul, ..".
std::string OperatorHistogram(const Graph& graph);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_GENERATE_H_
