#include "client/c_api/program.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/status.h"
#include "client/c_api/call.h"
#include "client/facts_context.h"
#include "client/optimize_model.h"
#include "client/plan_explanation.h"
#include "client/plan_facts.h"
#include "optimizer/certificate_proto.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<Json> MemberFacts(const Plan& plan) {
  FactsContext context;
  ReportExplanation(plan, context);
  ReportPlanTimes(plan.info, context);
  Json& facts = context.facts();
  const Json mutants = std::move(facts["mutants"]);
  ReportPlanInfo(plan.info, context);
  facts["mutant_counts"] = std::move(facts["mutants"]);
  facts["mutants"] = mutants;
  for (const auto& [name, shape] : InputShapes(plan.graph)) facts["inputs"][name] = shape;
  facts["certificate"] = nullptr;
  if (!plan.certificate_bytes.empty()) {
    MENDEL_ASSIGN_OR_RETURN(const Certificate certificate,
                            ParseCertificate(plan.certificate_bytes));
    facts["certificate"] = {{"bound_log2", certificate.bound_log2},
                            {"tests", certificate.draws.size()},
                            {"elements", certificate.elements},
                            {"segments", certificate.segments},
                            {"degree", certificate.degree}};
  }
  return std::move(facts);
}

}  // namespace

absl::StatusOr<mendel_program*> OptimizeProgram(const mendel_model* model,
                                                const mendel_call* given) {
  MENDEL_RETURN_IF_ERROR(CheckModel(model));
  MENDEL_ASSIGN_OR_RETURN(const mendel_call call, CallOf(given));
  OptimizeSettings settings;
  CLI::App app;
  AddOptimizeSettings(app, settings);
  MENDEL_RETURN_IF_ERROR(ParseWords(app, call.options));
  settings.model = NameOf(*model);
  settings.import.bytes = BytesOf(*model);
  MENDEL_ASSIGN_OR_RETURN(const auto turn, Turn::Take(call.stop));
  Reporter reporter(call);
  OptimizeWatcher watcher;
  watcher.progress = [&](const ProgressEvent& event) { reporter.Show(event); };
  watcher.phase = [&](const std::string& phase) {
    reporter.Show({.phase = phase, .detail = "", .seconds_left = -1});
  };
  watcher.interrupted = StopOf(call);
  FactsContext context;
  MENDEL_ASSIGN_OR_RETURN(const Optimized optimized, OptimizeModel(settings, watcher, context));
  MENDEL_RETURN_IF_ERROR(ReportOptimization(optimized, settings, watcher, context));
  auto program = std::make_unique<mendel_program>();
  for (const OptimizeResult& result : optimized.results) program->plans.push_back(result.plan);
  program->report = CompactJson(context.facts());
  return program.release();
}

absl::StatusOr<std::string> FactsOf(const mendel_program& program) {
  Json facts = {{"members", Json::array()}, {"report", Json::parse(program.report)}};
  for (const Plan& plan : program.plans) {
    MENDEL_ASSIGN_OR_RETURN(Json member, MemberFacts(plan));
    facts["members"].push_back(std::move(member));
  }
  return CompactJson(facts);
}

}  // namespace mendel
