#include "bench/layer_candidates.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "bench/expect.h"
#include "corrector/corrector.h"
#include "optimizer/stored_values.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

constexpr double kMaxWrongShare = 0.3;
constexpr double kVerifySeconds = 20;

std::string Description(const Rule& rule, const Match& match) {
  std::string text(rule.name);
  for (const auto& [name, value] : match.choices) text += Cat(" ", name, "=", value);
  return text;
}

std::optional<Mutant> FirstMutant(const Graph& graph, const Rule& rule) {
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    for (const Match& match : rule.match(graph, node, DefaultPredictor())) {
      auto mutant = MakeMutant(graph, rule, match, DefaultPredictor());
      if (mutant.ok()) return *std::move(mutant);
    }
  }
  return std::nullopt;
}

/// The rule's matches at the output, or at all nodes.
std::vector<Match> MatchesOn(const Graph& graph, const Rule& rule, bool at_output) {
  if (at_output) return rule.match(graph, graph.outputs()[0].value.node, DefaultPredictor());
  std::vector<Match> matches;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    for (Match& match : rule.match(graph, node, DefaultPredictor()))
      matches.push_back(std::move(match));
  }
  return matches;
}

}  // namespace

std::vector<Candidate> Candidates(const Subject& subject, const std::string& algorithm,
                                  const Laboratory& laboratory, const Deadline& deadline) {
  std::vector<Candidate> all;
  std::set<std::string> names;
  const Graph literal = Expect(WithUsefulLiterals(subject.graph, {}, names));
  for (const Rule* rule : AllRules()) {
    if (rule->stage != Stage::kSearch) continue;
    const Graph& layer = rule->reads_values ? literal : subject.graph;
    for (const Match& match : MatchesOn(layer, *rule, subject.one_operator)) {
      if (!all.empty() && deadline.Passed()) break;
      auto mutant = MakeMutant(layer, *rule, match, DefaultPredictor());
      if (!mutant.ok()) continue;  // the match turned out not to apply
      if (!subject.one_operator && mutant->original.nodes().size() != layer.nodes().size())
        continue;  // of a part only
      Candidate candidate{*std::move(mutant), {}};
      candidate.program.graph = candidate.mutant.mutant;
      candidate.program.description = Description(*rule, match);
      const std::vector<std::string> offered = laboratory.Algorithms(candidate.program.graph);
      if (offered.empty()) continue;  // nothing of it in this layout
      const bool same = std::find(offered.begin(), offered.end(), algorithm) != offered.end();
      const absl::Status tuned =
          laboratory.Tune(candidate.program, {same ? algorithm : offered.back()});
      if (!tuned.ok()) {
        std::fprintf(stderr, "%s: %s\n", candidate.program.description.c_str(),
                     std::string(tuned.message()).c_str());
        continue;
      }
      all.push_back(std::move(candidate));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.program.milliseconds < b.program.milliseconds;
  });
  return all;
}

absl::StatusOr<std::vector<Program>> CorrectedPrograms(const Mutant& mutant,
                                                       const Laboratory& laboratory) {
  std::vector<Program> programs;
  if (mutant.rule->claim == Claim::kExact) return programs;
  MENDEL_ASSIGN_OR_RETURN(
      const auto report, Localize(mutant.original, mutant.mutant,
                                  {.target_log2 = 0, .deadline = Deadline::After(kVerifySeconds)}));
  if (report.verdict == Verdict::kEquivalent) return programs;
  if (report.verdict != Verdict::kPartial)
    return absl::FailedPreconditionError(Cat("not partly equal: ", report.reason));
  for (const Correct correct : kCorrectionKinds) {
    auto corrected = correct(mutant.original, mutant.mutant, report, kMaxWrongShare);
    if (!corrected.ok()) continue;  // not of the kind that this way corrects
    Program program{std::move(corrected->graph),
                    std::string(CorrectionName(corrected->correction)),
                    corrected->flop_share,
                    "",
                    nullptr,
                    0};
    MENDEL_RETURN_IF_ERROR(laboratory.Tune(program, laboratory.Algorithms(program.graph)));
    programs.push_back(std::move(program));
  }
  if (programs.empty()) return absl::FailedPreconditionError("no way of correction applies");
  return programs;
}

std::vector<Subject> Samples(size_t seeds) {
  std::vector<Subject> subjects;
  for (const Rule* rule : AllRules()) {
    for (uint64_t seed = 1; seed <= seeds && rule->stage == Stage::kSearch; ++seed) {
      Rng rng(seed);
      const auto sample = rule->sample(rng);
      if (!sample.ok()) continue;
      const auto mutant = FirstMutant(*sample, *rule);
      if (!mutant.has_value()) continue;
      std::string operators;
      int count = 0;
      for (const Node& node : mutant->original.nodes()) {
        if (IsInput(node) || IsConstant(node)) continue;
        operators += Cat(count++ > 0 ? ", " : "", node.op->name);
      }
      if (count == 1 && operators == "Conv") continue;
      subjects.push_back(
          {Cat("sample ", seed, " of ", rule->name), operators, 1, mutant->original, false});
    }
  }
  return subjects;
}

}  // namespace mendel
