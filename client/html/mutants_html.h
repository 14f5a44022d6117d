// The mutants of a plan on its page: their algebra, the operators that they replaced, their
// corrections, and which nodes of the pictures belong to which of them.
#ifndef MENDEL_CLIENT_HTML_MUTANTS_HTML_H_
#define MENDEL_CLIENT_HTML_MUTANTS_HTML_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/plan.h"

namespace mendel {

/// The mutants of a rule, in the plan's order; they refer into the plan.
struct MutantGroup {
  std::string rule;
  std::vector<const plan::AppliedMutant*> mutants;
};
std::vector<MutantGroup> GroupMutants(const plan::PlanInfo& info);

/// The names of the model's nodes that the mutant replaced.
std::string PlaceOf(const plan::AppliedMutant& mutant);

/// One article a group: "mutant-0" and so on.
std::string MutantsHtml(const Plan& plan);

/// Nodes that mutants replaced or brought, by number, and the numbers of their groups.
struct MutantNodes {
  std::map<int32_t, int> before;  ///< nodes of the model
  /// Nodes of the plan that the model lacks, or that have a replaced node's name; -1 where the
  /// group is not known. Connected nodes without a name are of the mutants whose surroundings in
  /// the model share most names with theirs.
  std::map<int32_t, int> after;
};
MutantNodes FindMutantNodes(const Plan& plan);

}  // namespace mendel

#endif  // MENDEL_CLIENT_HTML_MUTANTS_HTML_H_
