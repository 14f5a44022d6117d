#include "optimizer/search/candidate_log.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace mendel {

std::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kNotTried:
      return "not tried";
    case Outcome::kUndecided:
      return "undecided";
    case Outcome::kRefused:
      return "refused";
    case Outcome::kWrongNumbers:
      return "wrong numbers";
    case Outcome::kSlowerAlone:
      return "slower alone";
    case Outcome::kNotTriedInWhole:
      return "not tried in the whole program";
    case Outcome::kSlowerInWhole:
      return "slower in the whole program";
    case Outcome::kUsed:
      return "used";
  }
  MENDEL_CHECK(false);
}

namespace {

/// Share of the elements of all outputs of `graph` that are in the boxes. What two boxes share
/// counts twice.
double ShareOf(const Graph& graph, const std::vector<std::vector<Box>>& boxes) {
  double inside = 0, all = 0;
  for (size_t k = 0; k < boxes.size(); ++k) {
    all += static_cast<double>(NumElements(graph.type(graph.outputs()[k].value)));
    for (const Box& box : boxes[k]) inside += static_cast<double>(box.Volume());
  }
  return all > 0 ? std::min(1.0, inside / all) : 0;
}

/// The share that the rule predicts to be wrong.
double PredictedShare(const Mutant& mutant) {
  if (mutant.rule->wrong == nullptr) return 0;
  const auto boxes = mutant.rule->wrong(mutant.original, mutant.match);
  return boxes.ok() ? ShareOf(mutant.original, *boxes) : 0;
}

}  // namespace

void CandidateLog::Note(const CandidateClass& candidate, Outcome outcome,
                        const std::string& reason) {
  const auto [at, fresh] = entries_.try_emplace(candidate.key);
  Entry& entry = at->second;
  if (!fresh && entry.outcome == Outcome::kUsed && outcome != Outcome::kUsed) return;
  if (!fresh && outcome == Outcome::kNotTried) return;
  entry.outcome = outcome;
  plan::Candidate& proto = entry.candidate;
  proto.set_outcome(std::string(OutcomeName(outcome)));
  proto.set_reason(reason);
  proto.set_rule(std::string(candidate.rule->name));
  for (const auto& [name, value] : candidate.choices) (*proto.mutable_choices())[name] = value;
  proto.set_occurrences(candidate.occurrences);
  if (candidate.first.has_value()) {
    if (proto.claim().empty()) proto.set_predicted_wrong_share(PredictedShare(*candidate.first));
    entry.expected_gain = candidate.expected_gain;
    proto.set_claim(std::string(ClaimName(candidate.rule->claim)));
    proto.clear_where();
    for (const std::string& name : candidate.where) proto.add_where(name);
    proto.set_predicted_original_ns(candidate.predicted_original * 1e9);
    proto.set_predicted_mutant_ns(candidate.predicted_mutant * 1e9);
  }
  proto.set_correction(candidate.alternative.correction);
  proto.set_wrong_share(ShareOf(candidate.alternative.graph, candidate.alternative.boxes));
  if (std::isfinite(candidate.alone.mutant_ns)) {
    proto.set_original_ns(candidate.alone.original_ns);
    proto.set_mutant_ns(candidate.alone.mutant_ns);
  }
}

std::vector<plan::Candidate> CandidateLog::Sorted(size_t most) const {
  std::vector<const Entry*> order;
  for (const auto& [key, entry] : entries_) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return std::tuple(a->outcome, a->expected_gain) > std::tuple(b->outcome, b->expected_gain);
  });
  std::vector<plan::Candidate> candidates;
  for (size_t k = 0; k < std::min(most, order.size()); ++k)
    candidates.push_back(order[k]->candidate);
  return candidates;
}

std::string PrintCandidates(const std::vector<plan::Candidate>& candidates) {
  plan::PlanInfo info;
  for (const plan::Candidate& candidate : candidates) *info.add_candidates() = candidate;
  return info.SerializeAsString();
}

std::vector<plan::Candidate> ParseCandidates(const std::string& bytes) {
  plan::PlanInfo info;
  if (!info.ParseFromString(bytes)) return {};
  return {info.candidates().begin(), info.candidates().end()};
}

}  // namespace mendel
