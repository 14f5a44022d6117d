// mendel verify M.plan --model M.onnx: replays the certificate from the two files alone.

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/command.h"
#include "client/format.h"
#include "client/model_options.h"
#include "optimizer/certificate_proto.h"
#include "runtime/plan.h"
#include "verifier/verifier.h"
#include "verifier/weights.h"

namespace mendel {
namespace {

struct Options {
  std::string plan;
  std::string model;
  bool fresh = false;
  ModelOptions import;
};

absl::Status Verify(const Options& options, Context& context) {
  context.Input(options.plan);
  MENDEL_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(options.plan));
  if (plan.certificate_bytes.empty()) return InvalidInput(options.plan, " carries no certificate");
  MENDEL_ASSIGN_OR_RETURN(Certificate certificate, ParseCertificate(plan.certificate_bytes));
  MENDEL_ASSIGN_OR_RETURN(const ImportResult model, ImportModel(options.model, options.import, context));
  const std::vector<std::string> differing = DifferingWeights(model.graph, plan.graph);
  context.facts()["differing_weights"] = differing;
  if (!differing.empty()) {
    return absl::FailedPreconditionError(
        Cat("the plan holds other weights than the model: ", differing.size(), " tensors, the first is '", differing[0], "'"));
  }
  if (options.fresh) {
    JudgeOptions judge;
    judge.weights = certificate.weights;
    MENDEL_ASSIGN_OR_RETURN(certificate, Certify(model.graph, plan.graph, judge));
  } else {
    MENDEL_RETURN_IF_ERROR(Replay(model.graph, plan.graph, certificate));
  }
  context.facts()["verdict"] = "equivalent";
  context.facts()["bound_log2"] = certificate.bound_log2;
  context.facts()["tests"] = certificate.draws.size();
  context.facts()["elements"] = certificate.elements;
  context.facts()["segments"] = certificate.segments;
  context.facts()["degree"] = certificate.degree;
  for (const Draw& draw : certificate.draws) context.facts()["primes"].push_back(draw.prime);
  context.Line(Cat("equivalent: every output element, bound 2^", Decimals(certificate.bound_log2, 0), ", ",
                   certificate.draws.size(), options.fresh ? " fresh" : " replayed", " tests, ", certificate.segments,
                   " segments, ", certificate.elements, " elements compared in each"));
  return absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("plan", options->plan, "Plan file")->required();
  app.add_option("--model", options->model, "The ONNX model that the plan was made of")->required();
  app.add_flag("--fresh", options->fresh, "Certify anew with fresh draws instead of replaying the recorded ones");
  AddModelOptions(app, options->import);
  return [options](Context& context) { return Verify(*options, context); };
}

Command Make() { return {"verify", "Checks a plan's certificate against its model", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel
