// Facts about a plan that `optimize` and `rebind` report alike; the service makes its Plan message
// of them (server/jobs/from_json.h).
#ifndef MENDEL_CLIENT_PLAN_FACTS_H_
#define MENDEL_CLIENT_PLAN_FACTS_H_

#include "client/command.h"
#include "mendel/plan.pb.h"

namespace mendel {

/// target {backend, isa, threads, numerics}, weights ("symbolic" or "exact"), unmeasured, mutants
/// {rule: how often}, numeric [..].
void ReportPlanInfo(const plan::PlanInfo& info, Context& context);

/// baseline, plan and speedup, as stored in the plan.
void ReportPlanTimes(const plan::PlanInfo& info, Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_PLAN_FACTS_H_
