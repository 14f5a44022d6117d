#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/format.h"
#include "client/html/graph_picture.h"
#include "client/html/html.h"
#include "client/html/mutant_nodes.h"
#include "client/html/mutants_html.h"
#include "client/html/pages.h"
#include "client/version.h"
#include "runtime/offline_device.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

std::string Milliseconds(double ms) { return Decimals(ms, 3) + " ms"; }

std::string TimesSection(const plan::PlanInfo& info) {
  const double before = info.baseline_ms().median_ms(), after = info.plan_ms().median_ms();
  std::string html =
      HtmlBars({{"model, default algorithms", Milliseconds(before), before, "before"},
                {"plan", Milliseconds(after), after, "after"}});
  if (IsUnmeasured(info))
    html += "<p class=\"soft\">These times are predicted, not measured.</p>\n";
  return HtmlSection("Time of a run", html);
}

/// Mutants by what each gains where it stands; the rest of the plan's gain is algorithms and
/// layouts.
std::string GainSection(const plan::PlanInfo& info) {
  double rest = info.baseline_ms().median_ms() - info.plan_ms().median_ms();
  std::vector<HtmlBar> bars;
  int layouts = 0;
  for (const auto& [node, name] : info.algorithms()) layouts += name.starts_with("layout") ? 1 : 0;
  for (const MutantGroup& group : GroupMutants(info)) {
    double gain = 0;
    for (const plan::AppliedMutant* mutant : group.mutants)
      gain += (mutant->original_ns() - mutant->mutant_ns()) / 1e6;
    rest -= gain;
    const size_t places = group.mutants.size();
    const std::string where = places == 1 ? Cat(" at ", Shortened(PlaceOf(*group.mutants[0]), 60))
                                          : Cat(", ", places, " places");
    bars.push_back({Cat("mutant ", group.rule, where), Milliseconds(gain), gain, "mutant"});
  }
  const int algorithms = static_cast<int>(info.algorithms_size()) - layouts;
  bars.push_back({Cat(info.mutants().empty() ? "" : "the rest: ", algorithms, " algorithm and ",
                      layouts, " layout choices"),
                  Milliseconds(rest), rest, "rest"});
  return HtmlSection(
      "Gain",
      HtmlBars(bars) +
          "<p class=\"soft\">A mutant's gain is that of its places alone. The rest is the "
          "difference "
          "to the whole: algorithms, layouts, and what changes when all run together. A negative "
          "rest means that places gain less together than alone.</p>\n");
}

/// The mutant's article on the page, or the section of all.
std::string LinkTo(int mutant) { return mutant < 0 ? "#mutants" : Cat("#mutant-", mutant); }

std::string GraphSection(const Plan& plan) {
  const MutantNodes nodes = FindMutantNodes(plan);
  const std::map<int32_t, std::string> algorithms(plan.info.algorithms().begin(),
                                                  plan.info.algorithms().end());
  const auto linked = [](const std::map<int32_t, int>& mutants) {
    return [&mutants](int32_t node) {
      const auto found = mutants.find(node);
      return found == mutants.end() ? std::string() : LinkTo(found->second);
    };
  };
  PictureOptions before, after;
  before.link = linked(nodes.before);
  after.link = linked(nodes.after);
  after.note = [&](int32_t node) {
    const auto found = algorithms.find(node);
    return found == algorithms.end() ? std::string() : found->second;
  };
  return HtmlSection(
      "Graph",
      Cat("<div class=\"graphs\">\n<figure><figcaption>Model; colored: replaced by mutants "
          "(click: the algebra)</figcaption>\n",
          GraphPicture(plan.baseline, before),
          "</figure>\n<figure><figcaption>Plan; colored: new nodes, red: a mutant with corrected "
          "boxes</figcaption>\n",
          GraphPicture(plan.graph, after), "</figure>\n</div>\n"));
}

/// The candidates that came farthest, those of the plan left out.
std::string CandidatesSection(const plan::PlanInfo& info) {
  constexpr size_t kMostShown = 40;
  std::vector<std::vector<std::string>> rows;
  size_t lost = 0;
  for (const plan::Candidate& candidate : info.candidates()) {
    if (candidate.outcome() == "used") continue;
    if (++lost > kMostShown) continue;
    std::string where;
    for (const std::string& name : candidate.where()) where += (where.empty() ? "" : ", ") + name;
    const bool timed = candidate.mutant_ns() > 0;
    rows.push_back({candidate.rule(), where, candidate.outcome(),
                    timed ? Decimals(candidate.original_ns() / 1e6, 3) : "",
                    timed ? Decimals(candidate.mutant_ns() / 1e6, 3) : "", candidate.reason()});
  }
  if (rows.empty()) return "";
  const std::string more =
      lost > kMostShown ? Cat("<p>", lost - kMostShown, " more are not shown.</p>\n") : "";
  return HtmlSection(
      "Candidates that lost",
      HtmlTable({"rule", "at", "outcome", "ms before", "ms after", "reason"}, rows, {3, 4}) + more);
}

std::string StepsHtml(const Json& steps, const std::string& title) {
  double total = 0;
  for (const Json& step : steps) total += step["ms"].get<double>();
  std::vector<std::vector<std::string>> rows;
  for (const Json& step : steps) {
    const double ms = step["ms"];
    const bool bounded = step.contains("bound_ms");
    rows.push_back({step["name"], step["kernel"], Decimals(ms, 3),
                    Decimals(total > 0 ? 100 * ms / total : 0, 1) + " %",
                    bounded ? Decimals(step["bound_ms"].get<double>(), 3) : "",
                    bounded ? step["bound_by"].get<std::string>() : "",
                    bounded && step["slow"].get<bool>() ? "below a quarter" : ""});
  }
  return Cat("<h3>", title, ": ", steps.size(), " steps, ", Milliseconds(total), "</h3>\n",
             HtmlTable({"step", "kernel", "ms", "share", "bound ms", "by", ""}, rows, {2, 3, 4}));
}

std::string StepsSection(const Json& facts) {
  std::string html;
  for (const auto& [name, title] : std::vector<std::pair<std::string, std::string>>{
           {"plan steps", "Plan"}, {"baseline steps", "Model"}}) {
    if (facts.contains(name)) html += StepsHtml(facts[name], title);
  }
  return html.empty() ? "" : HtmlSection("Steps, timed one by one", html);
}

std::string ProofSection(const Plan& plan) {
  plan::CertificateProto certificate;
  std::string html = "<p>The plan carries no certificate.</p>\n";
  if (!plan.certificate_bytes.empty() && certificate.ParseFromString(plan.certificate_bytes)) {
    html = Cat(
        "<p>Every output element of the plan is the model's own formal expression, for all ",
        "inputs", plan.info.weights() == plan::WEIGHTS_MODE_SYMBOLIC ? " and all weights" : "",
        ". This was tested at ", certificate.draws_size(), " random points of finite fields, on ",
        certificate.elements(), " elements each; the probability that it is wrong is at most 2^",
        Decimals(certificate.bound_log2(), 0),
        ". <code>mendel verify</code> replays the test from plan and model.</p>\n");
  }
  std::vector<std::vector<std::string>> rows;
  for (const plan::NumericResult& output : plan.info.numeric()) {
    char model[24], mine[24];
    std::snprintf(model, sizeof model, "%.1e", output.baseline_max());
    std::snprintf(mine, sizeof mine, "%.1e", output.plan_max());
    rows.push_back({output.output(), model, mine});
  }
  html +=
      "<p>Rounding is measured: the largest error against float64, as a share of the largest "
      "output.</p>\n" +
      HtmlTable({"output", "model", "plan"}, rows, {1, 2});
  return HtmlSection("Certificate", html);
}

}  // namespace

std::string PlanPage(const Plan& plan, const Json& facts, const std::string& command) {
  const plan::PlanInfo& info = plan.info;
  const double after = info.plan_ms().median_ms();
  const double speedup = after > 0 ? info.baseline_ms().median_ms() / after : 1;
  const std::string body =
      TimesSection(info) + GainSection(info) +
      HtmlSection("Mutants", Cat("<div id=\"mutants\">\n", MutantsHtml(plan), "</div>\n")) +
      GraphSection(plan) + CandidatesSection(info) + StepsSection(facts) + ProofSection(plan) +
      HtmlSection("Origin", HtmlFacts({{"device", info.target().identity()},
                                       {"threads", Cat(info.target().threads())},
                                       {"numerics", info.target().numerics()},
                                       {"plan made by", Cat("Mendel ", info.mendel_version())},
                                       {"page made by", Cat("Mendel ", VersionLine())},
                                       {"model's SHA-256", info.model_hash()}}) +
                                Cat("<pre>", Escaped(command), "</pre>\n"));
  return HtmlPage(Cat(info.model_name(), ": ", Decimals(speedup, 2), " times as fast"),
                  Cat(Milliseconds(info.baseline_ms().median_ms()), " → ", Milliseconds(after),
                      ", ", info.mutants_size(), info.mutants_size() == 1 ? " mutant" : " mutants"),
                  body);
}

}  // namespace mendel
