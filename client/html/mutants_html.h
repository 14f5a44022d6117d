// The mutants of a plan on its page: their algebra, the operators that they replaced, and their
// corrections.
#ifndef MENDEL_CLIENT_HTML_MUTANTS_HTML_H_
#define MENDEL_CLIENT_HTML_MUTANTS_HTML_H_

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

}  // namespace mendel

#endif  // MENDEL_CLIENT_HTML_MUTANTS_HTML_H_
