// The story of a plan as it stores it: mutants, corrected boxes, algorithms and the gain.
#ifndef MENDEL_CLIENT_PLAN_EXPLANATION_H_
#define MENDEL_CLIENT_PLAN_EXPLANATION_H_

#include "client/command.h"
#include "runtime/plan.h"

namespace mendel {

/// Reports what the plan takes without its mutants, algorithms or layouts; `predicted`: for a
/// device that ran nothing.
void ReportGainPart(const plan::GainPart& part, bool predicted, Context& context);

/// Reports lines and facts of `mendel explain`; measures nothing.
void ReportExplanation(const Plan& plan, Context& context);

/// Lists the candidates of the search: what became of each, and why.
void ReportCandidates(const plan::PlanInfo& info, Context& context);

/// Lists the sites of the model's sums of products, and the operators at which they end.
void ReportSites(const Graph& graph, Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_PLAN_EXPLANATION_H_
