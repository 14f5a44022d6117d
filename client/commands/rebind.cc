// mendel rebind M.plan --model NEW.onnx -o NEW.plan: the same plan, or every one of a bundle, for
// new weights, without a search.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/command.h"
#include "client/format.h"
#include "client/library_path.h"
#include "client/members.h"
#include "client/model_options.h"
#include "client/plan_facts.h"
#include "client/progress_pipe.h"
#include "client/rebind_plan.h"
#include "client/version.h"
#include "runtime/offline_device.h"

namespace mendel::commands::rebind {
namespace {

struct Options {
  std::string plan;
  std::string model;
  std::string output;
  ModelOptions import;
  int progress_fd = -1;
};

void ReportResult(const ReboundPlan& result, Context& context) {
  context.facts()["replaced_weights"] = result.weights;
  ReportPlanTimes(result.plan.info, context);
  ReportPlanInfo(result.plan.info, context);
  const Certificate& certificate = result.certificate;
  context.facts()["certificate"] = {{"bound_log2", certificate.bound_log2},
                                    {"tests", certificate.draws.size()},
                                    {"elements", certificate.elements},
                                    {"segments", certificate.segments},
                                    {"axioms", certificate.axioms}};
  context.Line(Cat("weights     ", result.weights, " tensors taken from the new model"));
  context.Line(Cat("certificate every element equal, bound 2^", Decimals(certificate.bound_log2, 0),
                   ", ", certificate.draws.size(), " tests, ", certificate.segments, " segments",
                   AxiomsText(certificate.axioms)));
  if (IsUnmeasured(result.plan.info)) {
    context.Line(
        "unmeasured  errors are those of the operators' definitions in double; no kernel was run");
  }
}

absl::StatusOr<ReboundPlan> RebindMember(const Plan& plan, const Options& options,
                                         ProgressPipe& pipe, Context& context) {
  pipe.Phase("import");
  ModelOptions import = options.import;
  import.known_shapes = InputShapes(plan.graph);
  import.choose_deciding = true;
  MENDEL_ASSIGN_OR_RETURN(const ImportResult model, ImportModel(options.model, import, context));
  pipe.Phase("certify");
  MENDEL_ASSIGN_OR_RETURN(ReboundPlan result, RebindPlan(plan, model.graph));
  result.plan.info.set_model_name(std::filesystem::path(options.model).filename().string());
  result.plan.info.set_model_hash(model.model_hash);
  result.plan.info.set_mendel_version(VersionLine());
  return result;
}

absl::Status Run(const Options& options, Context& context) {
  ProgressPipe pipe(options.progress_fd);
  context.Input(options.plan);
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Plan> plans, ReadPlans(options.plan));
  std::vector<Plan> rebound;
  MENDEL_RETURN_IF_ERROR(
      ReportMembers(OfferedShapes(plans), context, [&](size_t k, Context& member) -> absl::Status {
        MENDEL_ASSIGN_OR_RETURN(ReboundPlan result, RebindMember(plans[k], options, pipe, member));
        ReportResult(result, member);
        rebound.push_back(std::move(result.plan));
        return absl::OkStatus();
      }));
  pipe.Phase("write");
  MENDEL_RETURN_IF_ERROR(WritePlans(rebound, options.output));
  context.facts()["file"] = options.output;
  context.Line(Cat("wrote       ", options.output));
  return absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("plan", options->plan, "Plan whose certificate holds for all weights")->required();
  AddLibraryPathOption(app);
  app.add_option("--model", options->model, "ONNX file of the same structure with the new weights")
      ->required();
  app.add_option("-o,--output", options->output, "Plan file to write")->required();
  app.add_option("--bind", options->import.bindings,
                 "Make an input a constant, NAME=FILE.npy, as when the plan was made")
      ->take_all();
  AddProgressOption(app, options->progress_fd);
  return [options](Context& context) { return Run(*options, context); };
}

Command Make() { return {"rebind", "Puts new weights into a plan, without a search", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::rebind
