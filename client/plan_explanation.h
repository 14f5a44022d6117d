// The story of a plan as it stores it: mutants, corrected boxes, algorithms and the gain.
#ifndef MENDEL_CLIENT_PLAN_EXPLANATION_H_
#define MENDEL_CLIENT_PLAN_EXPLANATION_H_

#include "client/command.h"
#include "runtime/plan.h"

namespace mendel {

/// Reports lines and facts of `mendel explain`; measures nothing.
void ReportExplanation(const Plan& plan, Context& context);

/// Lists the candidates of the search: what became of each, and why.
void ReportCandidates(const plan::PlanInfo& info, Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_PLAN_EXPLANATION_H_
