// A plan for a model of the same structure with other weights, without a search.
//
// A certificate with symbolic weights holds for all values of the weights: the rewritten program is
// right for the new model too. It is proven once more all the same, against the new model's own
// graph, and the numeric gate measures the plan's rounding with the new weights. The times in the
// plan stay those of the old one: they depend on shapes, not on weights.
#ifndef MENDEL_CLIENT_REBIND_PLAN_H_
#define MENDEL_CLIENT_REBIND_PLAN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "optimizer/numeric_gate.h"
#include "runtime/plan.h"
#include "verifier/verifier.h"

namespace mendel {

/// OK when `plan` may take the weights of a model. InvalidArgument when it carries no certificate,
/// or one for its stored weights only.
absl::Status CheckRebindable(const Plan& plan, const Certificate& certificate);

struct ReboundPlan {
  Plan plan;
  Certificate certificate;
  GateResult gate;
  int64_t weights = 0;  ///< tensors that took new values
};

/// `plan` with the weights of `model` (matched by name), certified and gated. InvalidArgument names
/// the first difference when the structures differ (single numbers and integer constants are
/// structure); FailedPrecondition when the numeric gate refuses the new weights. `plan.info` keeps
/// times and search; model_name and model_hash are the caller's to set.
absl::StatusOr<ReboundPlan> RebindPlan(const Plan& plan, const Graph& model);

}  // namespace mendel

#endif  // MENDEL_CLIENT_REBIND_PLAN_H_
