// Explains why the verifier cuts an output into the regions that it probes: for `mendel verify
// --explain-regions` and for debugging.
#ifndef MENDEL_VERIFIER_REGIONS_EXPLAIN_REGIONS_H_
#define MENDEL_VERIFIER_REGIONS_EXPLAIN_REGIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// A position at which the structure of one of the two programs changes, and the node that makes it
/// change.
struct ExplainedBreak {
  int64_t at = 0;
  std::string node;  ///< name, or "#7" (position in both programs put together) where it has none
  std::string op;
  std::string what;  ///< "padding edge", "seam", "row of a view", ...
};

/// One dimension of an output. Its positions fall into ranges [0, b1), [b1, b2), ... between the
/// breaks and, within a range, into `period` residue classes; each class is one region along the
/// dimension.
struct ExplainedDimension {
  int64_t extent = 1;
  std::vector<ExplainedBreak> breaks;  ///< ascending; several may share a position
  int64_t period = 1;                  ///< the extent: every position is compared on its own
  std::string period_node;             ///< who made it so, empty when it is 1
  std::string period_op;
  std::string period_what;
  std::vector<std::string> displacements;  ///< one a class: what `period` steps do to the indices
                                           ///< read ("x +1 along 2, w still")
  int64_t probed = 1;                      ///< positions evaluated along this dimension
};

struct ExplainedOutput {
  std::string name;
  Shape shape;
  std::vector<ExplainedDimension> dims;
  bool congruent = false;   ///< both programs compute it by the same nodes: nothing is probed
  bool by_regions = false;  ///< false: every element is compared
  double regions = 0;       ///< boxes of the grid; may exceed every integer
  double probes = 0;        ///< elements evaluated: the product of `probed`, or all of them
  std::vector<std::string> reasons;  ///< why dimensions are compared position by position: "TopK:
                                     ///< no access pattern", ...
};

/// The plan of Localize for every output of the two programs, without evaluating anything. Errors
/// are those of Localize.
absl::StatusOr<std::vector<ExplainedOutput>> ExplainRegions(const Graph& f, const Graph& g,
                                                            const VerifierOptions& options);

/// Readable text, some lines an output, each ending in a newline.
std::string PrintRegions(const std::vector<ExplainedOutput>& outputs);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_EXPLAIN_REGIONS_H_
