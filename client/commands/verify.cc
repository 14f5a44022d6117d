// mendel verify A.onnx B.onnx: do two models compute the same function, and where do they differ?
// mendel verify M.plan --model M.onnx: replays the certificate from the two files alone.

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/heap.h"
#include "base/status.h"
#include "client/command.h"
#include "client/format.h"
#include "client/members.h"
#include "client/model_options.h"
#include "client/progress_pipe.h"
#include "client/remote_verify.h"
#include "client/verify_pair.h"
#include "optimizer/certificate_proto.h"
#include "verifier/verifier.h"
#include "verifier/weights/weights.h"

namespace mendel::commands::verify {
namespace {

struct Options {
  std::string model;
  bool fresh = false;
  PairOptions pair;
  int progress_fd = -1;
  ServerOptions server;
};

/// Programs that the verifier cannot decide are no bad input.
absl::Status AsUndecided(const absl::Status& status) {
  return absl::IsUnimplemented(status) ? absl::AbortedError(status.message()) : status;
}

absl::Status Check(const Graph& model, const Graph& plan, bool fresh, Certificate& certificate) {
  if (!fresh) return AsUndecided(Replay(model, plan, certificate));
  VerifierOptions verifier;
  verifier.weights = certificate.weights;
  absl::StatusOr<Certificate> made = Certify(model, plan, verifier);
  if (!made.ok()) return AsUndecided(made.status());
  certificate = *std::move(made);
  return absl::OkStatus();
}

absl::Status VerifyPlan(const Plan& plan, const Options& options, ProgressPipe& pipe,
                        Context& context) {
  if (plan.certificate_bytes.empty())
    return InvalidInput(options.pair.a, " carries no certificate");
  MENDEL_ASSIGN_OR_RETURN(Certificate certificate, ParseCertificate(plan.certificate_bytes));
  pipe.Phase("import");
  ModelOptions import = options.pair.import;
  if (import.shapes.empty()) import.known_shapes = InputShapes(plan.graph);
  import.choose_deciding = true;  // as the plan was made; its certificate holds for nothing else
  MENDEL_ASSIGN_OR_RETURN(const ImportResult model, ImportModel(options.model, import, context));
  const std::vector<std::string> differing = DifferingWeights(model.graph, plan.graph);
  context.facts()["differing_weights"] = differing;
  if (!differing.empty()) {
    return absl::FailedPreconditionError(
        Cat("the plan contains other weights than the model: ", differing.size(),
            " tensors, the first is '", differing[0], "'"));
  }
  pipe.Phase("certify");
  MENDEL_RETURN_IF_ERROR(Check(model.graph, plan.graph, options.fresh, certificate));
  context.facts()["verdict"] = "equivalent";
  context.facts()["bound_log2"] = certificate.bound_log2;
  context.facts()["tests"] = certificate.draws.size();
  context.facts()["elements"] = certificate.elements;
  context.facts()["segments"] = certificate.segments;
  context.facts()["axioms"] = certificate.axioms;
  context.facts()["degree"] = certificate.degree;
  for (const Draw& draw : certificate.draws) context.facts()["primes"].push_back(draw.prime);
  context.Line(Cat("equivalent: every output element, bound 2^",
                   Decimals(certificate.bound_log2, 0), ", ", certificate.draws.size(),
                   options.fresh ? " fresh" : " replayed", " tests, ", certificate.segments,
                   " segments, ", certificate.elements, " elements compared in each",
                   AxiomsText(certificate.axioms)));
  return absl::OkStatus();
}

/// Verifies every member of a bundle, or the one that --shapes chooses. For a single plan, --shapes
/// are the model's, as for a pair.
absl::Status VerifyPlans(const Options& options, ProgressPipe& pipe, Context& context) {
  pipe.Phase("import");
  context.Input(options.pair.a);
  MENDEL_ASSIGN_OR_RETURN(std::vector<Plan> plans, ReadPlans(options.pair.a));
  if (plans.size() > 1) {
    MENDEL_ASSIGN_OR_RETURN(plans, ReadMembers(options.pair.a, options.pair.import.shapes));
  }
  return ReportMembers(OfferedShapes(plans), context, [&](size_t k, Context& member) {
    return VerifyPlan(plans[k], options, pipe, member);
  });
}

absl::Status Verify(const Options& options, Context& context) {
  if (options.model.empty() == options.pair.b.empty()) {
    return InvalidInput("verify takes two models (A.onnx B.onnx), or a plan and --model M.onnx");
  }
  if (!options.server.service.address.empty()) {
    return options.model.empty()
               ? VerifyPairRemotely(options.server, options.pair, context)
               : VerifyPlanRemotely(options.server, options.pair.a, options.model, context);
  }
  ProgressPipe pipe(options.progress_fd);
  if (!options.model.empty()) return VerifyPlans(options, pipe, context);
  pipe.Phase("compare");
  KeepFreedMemory();
  return VerifyPair(options.pair, context);
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("a", options->pair.a, "A model, or a plan together with --model")->required();
  app.add_option("b", options->pair.b, "The model (or plan) that is compared with it");
  app.add_option("--model", options->model, "The ONNX model that the plan was made of");
  app.add_flag(
      "--fresh", options->fresh,
      "With --model: certify anew with fresh draws instead of replaying the recorded ones");
  AddPairOptions(app, options->pair);
  AddProgressOption(app, options->progress_fd);
  AddServerOptions(app, options->server, false);
  return [options](Context& context) { return Verify(*options, context); };
}

Command Make() {
  return {"verify", "Compares two models, or checks a plan's certificate against its model",
          &Setup};
}

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::verify
