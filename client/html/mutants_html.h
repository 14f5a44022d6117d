// The mutants of a plan on its page: their algebra, the operators that they replaced, their
// corrections, and which nodes of the pictures belong to which of them.
#ifndef MENDEL_CLIENT_HTML_MUTANTS_HTML_H_
#define MENDEL_CLIENT_HTML_MUTANTS_HTML_H_

#include <cstdint>
#include <map>
#include <string>

#include "runtime/plan.h"

namespace mendel {

/// One article a mutant, "mutant-0" and so on.
std::string MutantsHtml(const Plan& plan);

/// Nodes that mutants replaced or brought, by number, and their mutants.
struct MutantNodes {
  std::map<int32_t, int> before;  ///< nodes of the model
  /// Nodes of the plan that the model lacks, or that have a replaced node's name; -1 where the
  /// mutant is not known. Each connected group of nodes without a name is of the mutant whose
  /// surroundings in the model share most names with the group's.
  std::map<int32_t, int> after;
};
MutantNodes FindMutantNodes(const Plan& plan);

}  // namespace mendel

#endif  // MENDEL_CLIENT_HTML_MUTANTS_HTML_H_
