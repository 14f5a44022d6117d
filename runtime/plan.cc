#include "runtime/plan.h"

#include <utility>

#include "base/status.h"
#include "runtime/backend.h"
#include "runtime/offline_device.h"
#include "runtime/plan_sections.h"

namespace mendel {

NamedShapes InputShapes(const Graph& graph) {
  NamedShapes shapes;
  for (const int32_t id : graph.inputs())
    shapes.emplace_back(InputName(graph.node(id)), graph.node(id).outputs[0].shape);
  return shapes;
}

absl::Status WritePlan(const Plan& plan, const std::string& path) {
  WeightWriter weights;
  MENDEL_ASSIGN_OR_RETURN(const PlanTexts texts, EncodePlan(plan, weights));
  return WriteSections(texts.Sections(weights.TakePieces()), path);
}

absl::StatusOr<Plan> ReadPlan(const std::string& path) {
  MENDEL_ASSIGN_OR_RETURN(const MappedPlan file, MapPlanFile(path));
  absl::StatusOr<Plan> plan = ParsePlan(file.bytes, file.owner);
  if (!plan.ok()) return Annotate(plan.status(), path);
  plan->file = file.owner;
  return plan;
}

absl::StatusOr<Plan> ParsePlan(std::span<const std::byte> bytes,
                               std::shared_ptr<const void> owner) {
  PlanWeights aligned = AlignedPlan(bytes, std::move(owner));
  return DecodePlan(aligned.bytes, std::move(aligned.owner));
}

absl::StatusOr<PlanHeader> ReadPlanHeader(const std::string& path) {
  MENDEL_ASSIGN_OR_RETURN(const MappedPlan file, MapPlanFile(path));
  absl::StatusOr<PlanHeader> header = DecodePlanHeader(file.bytes);
  if (!header.ok()) return Annotate(header.status(), path);
  return header;
}

absl::Status CheckTarget(const plan::PlanInfo& info, const Backend& backend) {
  const plan::Target& target = info.target();
  if (target.backend() != backend.name()) {
    return InvalidInput("the plan is for backend '", target.backend(), "', not '", backend.name(),
                        "'");
  }
  const std::string here = backend.Identity();
  if (target.identity() == here) return absl::OkStatus();
  if (IsUnmeasured(info)) {  // for an architecture, not for a machine
    if (target.isa() == backend.Isa()) return absl::OkStatus();
    return InvalidInput("the plan was made offline for ", target.isa(), ", and this machine is ",
                        backend.Isa(), " ('", here,
                        "'); optimize the model here, or run with --retune");
  }
  return InvalidInput(
      "the plan was tuned for '", target.identity(), "', and this machine is '", here,
      "'; optimize the model here, or run with --retune to use this machine's default algorithms");
}

}  // namespace mendel
