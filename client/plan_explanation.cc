#include "client/plan_explanation.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/format.h"
#include "mutator/index/sites.h"
#include "runtime/offline_device.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

std::string BoxText(const plan::BoxProto& box) {
  return BoxString(
      {Shape(box.begin().begin(), box.begin().end()), Shape(box.end().begin(), box.end().end())});
}

/// The place in the program where a correction is computed.
std::string PlaceOf(const std::string& correction) {
  if (correction == "recompute") return "over the finished output";
  if (correction == "difference") return "before its elementwise operators";
  if (correction == "end") return "recomputed at its end, before the mutant's last layout change";
  if (correction == "elementwise")
    return "the difference, in the elementwise operators that follow";
  if (correction == "inside") return "recomputed before the mutant's last layout change";
  return "";
}

void ReportMutant(const plan::AppliedMutant& mutant, Context& context) {
  Json fact = {{"rule", mutant.rule()},
               {"claim", mutant.claim()},
               {"original_ms", mutant.original_ns() / 1e6},
               {"mutant_ms", mutant.mutant_ns() / 1e6}};
  std::string where, choices;
  for (const std::string& name : mutant.where())
    where += (where.empty() ? "" : ", ") + (name.empty() ? "?" : name);
  for (const auto& [name, value] :
       std::map<std::string, int64_t>(mutant.choices().begin(), mutant.choices().end())) {
    choices += Cat(" ", name, "=", value);
    fact["choices"][name] = value;
  }
  fact["where"] = where;
  context.Line(Cat(mutant.rule(), choices, " (", mutant.claim(), ")  ",
                   Decimals(mutant.original_ns() / 1e6, 3), " -> ",
                   Decimals(mutant.mutant_ns() / 1e6, 3), " ms alone"));
  context.Line(Cat("  at ", where));
  for (const std::string& saved : mutant.saved()) {
    context.Line(Cat("  ", saved));
    fact["saved"].push_back(saved);
  }
  for (const plan::MendedOutput& output : mutant.mended()) {
    context.Line(Cat("  corrected by ", mutant.mending(), " (", PlaceOf(mutant.mending()),
                     "): ", output.wrong_elements(), " of ", output.elements(), " elements of ",
                     output.output()));
    Json corrected = {{"output", output.output()},
                      {"shape", std::vector<int64_t>(output.shape().begin(), output.shape().end())},
                      {"elements", output.elements()},
                      {"wrong_elements", output.wrong_elements()}};
    for (const plan::BoxProto& box : output.boxes()) {
      context.Line(Cat("    box ", BoxText(box)));
      corrected["boxes"].push_back(BoxText(box));
    }
    // These keys keep their old names for version 0.1: `correction`, `corrected_where` and
    // `corrected` replace them.
    fact["mending"] = mutant.mending();
    fact["mended_where"] = PlaceOf(mutant.mending());
    fact["mended"].push_back(std::move(corrected));
  }
  context.facts()["mutants"].push_back(std::move(fact));
}

}  // namespace

void ReportGainPart(const plan::GainPart& part, bool predicted, Context& context) {
  const bool measured = part.without() > 0;
  const std::string kind =
      part.count() == 1 ? part.kind().substr(0, part.kind().size() - 1) : part.kind();
  context.Line(
      Cat("            without its ", part.count(), " ", kind, ": ",
          measured ? Cat(Decimals(part.without(), 2), "x as long", predicted ? " (predicted)" : "")
                   : "not measured"));
  context.facts()["gain_parts"][part.kind()] = {{"count", part.count()},
                                                {"without", part.without()}};
}

void ReportExplanation(const Plan& plan, Context& context) {
  const plan::PlanInfo& info = plan.info;
  context.Line(Cat(info.model_name(), ": ", Decimals(info.baseline_ms().median_ms(), 3), " -> ",
                   Decimals(info.plan_ms().median_ms(), 3), " ms ",
                   IsUnmeasured(info) ? "(unmeasured, predicted) " : "", "on ",
                   info.target().identity(), ", ", info.target().threads(), " threads, numerics ",
                   info.target().numerics()));
  context.facts()["model"] = info.model_name();
  context.facts()["unmeasured"] = IsUnmeasured(info);
  context.facts()["baseline_ms"] = info.baseline_ms().median_ms();
  context.facts()["plan_ms"] = info.plan_ms().median_ms();
  for (const plan::GainPart& part : info.gain_parts())
    ReportGainPart(part, IsUnmeasured(info), context);
  context.facts()["mutants"] = Json::array();
  if (info.mutants().empty()) context.Line("no mutant won: the plan is the baseline's graph");
  for (const plan::AppliedMutant& mutant : info.mutants()) ReportMutant(mutant, context);
  for (const auto& [node, name] :
       std::map<int32_t, std::string>(info.algorithms().begin(), info.algorithms().end())) {
    const Node& chosen = plan.graph.node(node);
    context.Line(
        Cat("algorithm ", name, " for ", chosen.name.empty() ? Cat("%", node) : chosen.name));
    context.facts()["algorithms"].push_back({{"node", chosen.name}, {"algorithm", name}});
  }
}

void ReportCandidates(const plan::PlanInfo& info, Context& context) {
  context.facts()["candidates"] = Json::array();
  if (info.candidates().empty())
    context.Line("the plan lists no candidates: its search had none, or was by method egraph");
  for (const plan::Candidate& candidate : info.candidates()) {
    std::string choices, where;
    for (const auto& [name, value] :
         std::map<std::string, int64_t>(candidate.choices().begin(), candidate.choices().end()))
      choices += Cat(" ", name, "=", value);
    for (const std::string& name : candidate.where())
      where += (where.empty() ? "" : ", ") + (name.empty() ? "?" : name);
    std::string line = Cat(candidate.outcome(), ": ", candidate.rule(), choices);
    if (candidate.mutant_ns() > 0) {
      line += Cat("  ", Decimals(candidate.original_ns() / 1e6, 3), " -> ",
                  Decimals(candidate.mutant_ns() / 1e6, 3), " ms alone");
    } else if (candidate.predicted_mutant_ns() > 0) {
      line += Cat("  predicted ", Decimals(candidate.predicted_original_ns() / 1e6, 3), " -> ",
                  Decimals(candidate.predicted_mutant_ns() / 1e6, 3), " ms alone");
    }
    if (candidate.wrong_share() > 0) {
      line += Cat(", ", Decimals(100 * candidate.wrong_share(), 1), " % wrong, corrected by ",
                  candidate.correction());
    }
    if (candidate.occurrences() > 1) line += Cat(", at ", candidate.occurrences(), " places");
    context.Line(line);
    if (!candidate.reason().empty()) context.Line(Cat("  ", candidate.reason()));
    if (!where.empty()) context.Line(Cat("  at ", where));
    context.facts()["candidates"].push_back(
        {{"rule", candidate.rule()},
         {"claim", candidate.claim()},
         {"where", where},
         {"occurrences", candidate.occurrences()},
         {"outcome", candidate.outcome()},
         {"reason", candidate.reason()},
         {"correction", candidate.correction()},
         {"wrong_share", candidate.wrong_share()},
         {"predicted_wrong_share", candidate.predicted_wrong_share()},
         {"predicted_original_ms", candidate.predicted_original_ns() / 1e6},
         {"predicted_mutant_ms", candidate.predicted_mutant_ns() / 1e6},
         {"original_ms", candidate.original_ns() / 1e6},
         {"mutant_ms", candidate.mutant_ns() / 1e6}});
  }
}

void ReportSites(const Graph& graph, Context& context) {
  const auto name_of = [&](int32_t id) {
    const Node& node = graph.node(id);
    if (IsInput(node)) return InputName(node);
    return node.name.empty() ? Cat(std::string(node.op->name), " ", id) : node.name;
  };
  const std::vector<SiteReport> sites = DescribeSites(graph);
  context.Line(Cat(sites.size(), sites.size() == 1 ? " site" : " sites", " of sums of products:"));
  context.facts()["sites"] = Json::array();
  for (const SiteReport& site : sites) {
    std::string line;
    Json nodes = Json::array();
    for (const int32_t id : site.nodes) {
      line += Cat(line.empty() ? "" : ", ", name_of(id));
      nodes.push_back(name_of(id));
    }
    context.Line(Cat("  ", line));
    Json ends = Json::array();
    for (const SiteEnd& end : site.ends) {
      context.Line(Cat("    ends at ", name_of(end.value.node), ": ", end.reason));
      ends.push_back({{"value", name_of(end.value.node)}, {"reason", end.reason}});
    }
    context.facts()["sites"].push_back({{"nodes", nodes}, {"ends", ends}});
  }
}

}  // namespace mendel
