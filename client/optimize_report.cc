#include "client/optimize_report.h"

#include <sys/resource.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "client/format.h"
#include "client/operator_counts.h"
#include "client/plan_explanation.h"
#include "runtime/offline_device.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

/// Memory high-water mark of the process in bytes.
int64_t PeakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

Json EGraphJson(const EGraphReport& report) {
  return {{"nodes", report.nodes},
          {"classes", report.classes},
          {"applications", report.applications},
          {"banned", report.banned},
          {"extractions", report.extractions},
          {"extraction", report.extraction},
          {"columns", report.columns},
          {"rows", report.rows},
          {"loop_cuts", report.loop_cuts},
          {"extraction_seconds", report.extraction_seconds},
          {"predicted_ms", report.predicted_ms},
          {"lower_bound_ms", report.lower_bound_ms},
          {"gap", report.gap},
          {"peak_bytes", report.peak_bytes}};
}

void ReportEGraph(const EGraphReport& report, Context& context) {
  context.Line(Cat("e-graph     ", report.nodes, " e-nodes, ", report.classes, " classes, ",
                   report.applications, " alternatives, ", report.banned, " rules banned; ",
                   report.extractions, " extractions, the last by ", report.extraction, " (",
                   report.columns, " variables, ", report.rows, " rows, ", report.loop_cuts,
                   " loop cuts): ", Decimals(report.predicted_ms, 3), " ms, at most ",
                   Decimals(100 * report.gap, 2), " % above the optimum"));
}

}  // namespace

void ReportOptimized(const OptimizeResult& result, const std::string& method, Context& context) {
  const SearchResult& search = result.search;
  const double speedup = search.best_time.median_ms > 0
                             ? search.baseline_time.median_ms / search.best_time.median_ms
                             : 1;
  Json& facts = context.facts();
  facts["baseline"] = TimingJson(search.baseline_time);
  facts["plan"] = TimingJson(search.best_time);
  facts["speedup"] = speedup;
  const plan::SearchCounters& counters = search.counters;
  facts["search"] = {{"method", method},
                     {"proposed", counters.proposed()},
                     {"screened_out", counters.screened_out()},
                     {"partial", counters.partial()},
                     // The key keeps its old name for version 0.1: `corrected` replaces it.
                     {"mended", counters.mended()},
                     {"measured", counters.measured()},
                     {"chosen", counters.chosen()},
                     {"rounds", counters.rounds()},
                     {"stop_reason", counters.stop_reason()},
                     {"seed", counters.seed()},
                     {"wrong_numbers", counters.wrong_numbers()},
                     {"weight_growth", counters.weight_growth()},
                     {"matching_seconds", search.matching_seconds},
                     {"algorithms", search.best.algorithms.size()}};
  if (search.egraph.has_value()) facts["search"]["egraph"] = EGraphJson(*search.egraph);
  for (const auto& [phase, seconds] : result.phases) facts["seconds"][phase] = seconds;
  facts["seconds"]["float64 reference"] = result.gate.reference_seconds;
  facts["peak_memory_bytes"] = PeakMemory();
  const OperatorCounts before = CountOperators(result.plan.baseline),
                       after = CountOperators(result.plan.graph);
  facts["operators"] = {{"baseline", before}, {"plan", after}};
  const Certificate& certificate = result.certificate;
  facts["certificate"] = {
      {"bound_log2", certificate.bound_log2}, {"tests", certificate.draws.size()},
      {"elements", certificate.elements},     {"segments", certificate.segments},
      {"axioms", certificate.axioms},         {"reused", result.certificate_reused}};
  context.Line(Cat("            ", "median ms   min ms   operators"));
  context.Line(Cat("baseline    ", Decimals(search.baseline_time.median_ms, 3), "       ",
                   Decimals(search.baseline_time.min_ms, 3), "    ", Total(before)));
  context.Line(Cat("plan        ", Decimals(search.best_time.median_ms, 3), "       ",
                   Decimals(search.best_time.min_ms, 3), "    ", Total(after)));
  context.Line(Cat("speed-up    ", Decimals(speedup, 2), "x  (", counters.chosen(), " mutants, ",
                   search.best.algorithms.size(), " algorithm choices)"));
  for (const plan::GainPart& part : search.parts)
    ReportGainPart(part, IsUnmeasured(result.plan.info), context);
  context.Line(Cat("candidates  ", counters.proposed(), " proposed, ", counters.screened_out(),
                   " screened out, ", counters.partial(), " partial, ", counters.mended(),
                   " corrected, ", counters.measured(), " programs measured, ",
                   counters.wrong_numbers(),
                   " dropped for their numbers; stopped: ", counters.stop_reason()));
  if (search.egraph.has_value()) ReportEGraph(*search.egraph, context);
  context.Line(Cat("certificate every element equal, bound 2^", Decimals(certificate.bound_log2, 0),
                   ", ", certificate.draws.size(), " tests, ", certificate.segments, " segments",
                   AxiomsText(certificate.axioms), result.certificate_reused ? " (stored)" : ""));
  for (const plan::NumericResult& output : result.gate.outputs) {
    char errors[96];
    std::snprintf(errors, sizeof(errors), "baseline %.1e, plan %.1e (99.9%%: %.1e)",
                  output.baseline_max(), output.plan_max(), output.plan_p999());
    context.Line(
        Cat("error       ", output.output(), ": ", std::string(errors), " of the largest output"));
  }
}

}  // namespace mendel
