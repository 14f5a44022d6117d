#include "client/model_session.h"

#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "optimizer/normalize.h"
#include "runtime/backend.h"
#include "runtime/backend_names.h"
#include "runtime/cpu_topology.h"
#include "runtime/numerics.h"
#include "runtime/quantized.h"

namespace mendel {

absl::StatusOr<Plan> BaselinePlan(const ImportResult& model) {
  std::set<std::string> faults;
  Plan plan;
  MENDEL_ASSIGN_OR_RETURN(plan.graph, Normalize(model.graph, {}, faults));
  const Backend* backend = FindBackend("cpu");
  if (backend == nullptr)
    return InvalidInput("this program has no backend 'cpu' (", BackendNames(), ")");
  plan.info.mutable_target()->set_backend("cpu");
  plan.info.mutable_target()->set_identity(backend->Identity());
  // Sessions take this number unless the caller gives another: no search has tuned it.
  plan.info.mutable_target()->set_threads(PhysicalCores());
  plan.info.mutable_target()->set_numerics(
      std::string(NumericsName(NumericsFor(plan.graph, Numerics::kDefault))));
  plan.info.set_model_hash(model.model_hash);
  return plan;
}

namespace {

absl::StatusOr<DynamicSession::Specialized> Specialize(const OnnxModel& model,
                                                       const NamedShapes& shapes,
                                                       const DynamicSession::Values& deciding) {
  ImportOptions options;
  options.shapes = shapes;
  DynamicSession::Specialized made;
  const auto imported = model.ImportDecided(options, deciding, made.bound);
  if (!imported.ok())
    return Annotate(imported.status(), Cat("for the inputs ", ShapesText(shapes)));
  MENDEL_ASSIGN_OR_RETURN(made.plan, BaselinePlan(*imported));
  return made;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BundleSession>> LoadModelSession(const std::string& path,
                                                                const ModelOptions& import,
                                                                const SessionOptions& options,
                                                                Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const ImportResult model, ImportModel(path, import, context));
  std::vector<Plan> plans(1);
  MENDEL_ASSIGN_OR_RETURN(plans[0], BaselinePlan(model));
  return BundleSession::Create(std::move(plans), options);
}

absl::StatusOr<std::unique_ptr<DynamicSession>> OpenDynamicModel(
    const std::string& path, std::optional<std::string_view> bytes, SessionOptions options,
    DynamicLimits limits) {
  MENDEL_ASSIGN_OR_RETURN(const OnnxModel model,
                          bytes.has_value() ? OnnxModel::Parse(*bytes, ExternalDataFolder(path))
                                            : OnnxModel::Read(path));
  DynamicSession::Model parts = {
      model.inputs(), model.hash(), model.deciding_inputs(),
      [model](const NamedShapes& shapes, const DynamicSession::Values& deciding) {
        return Specialize(model, shapes, deciding);
      }};
  return std::make_unique<DynamicSession>(std::move(parts), std::move(options), limits);
}

}  // namespace mendel
