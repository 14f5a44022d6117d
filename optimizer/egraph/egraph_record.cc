#include "optimizer/egraph/egraph_record.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/text.h"

namespace mendel {
namespace {

constexpr int64_t kMaxLiteral = 4096;

void Store(const Timing& from, plan::TimingProto* to) {
  to->set_median_ms(from.median_ms);
  to->set_min_ms(from.min_ms);
  to->set_p90_ms(from.p90_ms);
  to->set_spread(from.spread);
  to->set_runs(from.runs);
}

Timing Restore(const plan::TimingProto& from) {
  return {.median_ms = from.median_ms(),
          .min_ms = from.min_ms(),
          .p90_ms = from.p90_ms(),
          .spread = from.spread(),
          .runs = from.runs()};
}

std::string PrintEGraphReport(const EGraphReport& report) {
  std::ostringstream text;
  text.precision(17);
  text << report.nodes << ' ' << report.classes << ' ' << report.applications << ' '
       << report.banned << ' ' << report.extractions << ' '
       << (report.extraction.empty() ? "-" : report.extraction) << ' ' << report.columns << ' '
       << report.rows << ' ' << report.loop_cuts << ' ' << report.extraction_seconds << ' '
       << report.predicted_ms << ' ' << report.lower_bound_ms << ' ' << report.gap << ' '
       << report.peak_bytes;
  return text.str();
}

EGraphReport ParseEGraphReport(std::istream& text) {
  EGraphReport report;
  text >> report.nodes >> report.classes >> report.applications >> report.banned >>
      report.extractions >> report.extraction >> report.columns >> report.rows >>
      report.loop_cuts >> report.extraction_seconds >> report.predicted_ms >>
      report.lower_bound_ms >> report.gap >> report.peak_bytes;
  if (report.extraction == "-") report.extraction.clear();
  return report;
}

}  // namespace

/// Two lines - reason, sizes of what follows, report; number of weights - then names of weights
/// (one a line), a PlanInfo, the graph.
std::optional<std::string> PrintEGraphRecord(const SearchResult& result) {
  int64_t literal = 16;
  for (const Node& node : result.best.graph.nodes()) {
    if (IsConstant(node) && SymbolName(node).empty())
      literal = std::max(literal, ConstantValue(node).size());
  }
  if (literal > kMaxLiteral) return std::nullopt;
  std::string names;
  size_t count = 0;
  for (const Node& node : result.best.graph.nodes()) {
    if (!IsConstant(node) || ConstantValue(node).size() <= literal) continue;
    if (SymbolName(node).find('\n') != std::string::npos) return std::nullopt;
    names += SymbolName(node) + "\n";
    ++count;
  }
  std::vector<Tensor> tensors;
  const std::string graph =
      PrintGraph(result.best.graph, {.tensors = &tensors, .inline_limit = literal});
  if (tensors.size() != count) return std::nullopt;
  plan::PlanInfo info;
  for (const auto& [node, name] : result.best.algorithms) (*info.mutable_algorithms())[node] = name;
  for (const plan::AppliedMutant& mutant : result.mutants) *info.add_mutants() = mutant;
  *info.mutable_search() = result.counters;
  Store(result.baseline_time, info.mutable_baseline_ms());
  Store(result.best_time, info.mutable_plan_ms());
  for (const plan::GainPart& part : result.parts) *info.add_gain_parts() = part;
  const std::string facts = info.SerializeAsString();
  return Cat(static_cast<int>(result.stop_reason), " ", facts.size(), " ", count, " ",
             PrintEGraphReport(result.egraph.value_or(EGraphReport())), "\n", names, facts, graph);
}

std::optional<SearchResult> ParseEGraphRecord(const std::string& text, const Graph& baseline) {
  std::istringstream in(text);
  int reason = 0;
  size_t facts_size = 0, count = 0;
  in >> reason >> facts_size >> count;
  SearchResult result;
  result.egraph = ParseEGraphReport(in);
  std::string line;
  if (!in || !std::getline(in, line)) return std::nullopt;
  std::map<std::string, Tensor> weights;
  for (const Node& node : baseline.nodes()) {
    if (IsConstant(node) && !SymbolName(node).empty())
      weights.emplace(SymbolName(node), ConstantValue(node));
  }
  std::vector<Tensor> tensors;
  for (size_t k = 0; k < count; ++k) {
    const auto known = std::getline(in, line) ? weights.find(line) : weights.end();
    if (known == weights.end()) return std::nullopt;
    tensors.push_back(known->second);
  }
  std::string facts(facts_size, '\0');
  if (!in.read(facts.data(), static_cast<std::streamsize>(facts_size))) return std::nullopt;
  plan::PlanInfo info;
  auto graph = ParseGraph(text.substr(static_cast<size_t>(in.tellg())), tensors);
  if (!graph.ok() || !info.ParseFromString(facts)) return std::nullopt;
  result.best = {*std::move(graph),
                 {info.algorithms().begin(), info.algorithms().end()},
                 "the stored program"};
  result.mutants.assign(info.mutants().begin(), info.mutants().end());
  result.counters = info.search();
  result.baseline_time = Restore(info.baseline_ms());
  result.best_time = Restore(info.plan_ms());
  result.parts.assign(info.gain_parts().begin(), info.gain_parts().end());
  result.stop_reason = static_cast<StopReason>(reason);
  return result;
}

}  // namespace mendel
