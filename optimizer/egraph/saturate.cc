#include "optimizer/egraph/saturate.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "optimizer/egraph/extract.h"
#include "optimizer/search/matches.h"

namespace mendel {
namespace {

// A mutant that is predicted to be slower than this is not measured.
constexpr double kMeasureBelow = 1.5;
constexpr double kExpandBelow = 1.25;  // slower alone than this: no further rules on top of it
constexpr double kLeastShare = 0.02;  // of an alternative's time that its own e-nodes cost at least
// Preferences, not seconds, when a graph is made that shows certain alternatives.
constexpr double kWanted = 1e-3, kBase = 1, kOther = 1e3;

StopReason ReasonOf(EGraphLimit limit) {
  return limit == EGraphLimit::kNodes     ? StopReason::kNodeLimit
         : limit == EGraphLimit::kClasses ? StopReason::kClassLimit
                                          : StopReason::kByteLimit;
}

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

Saturator::Saturator(SearchSession& session, EGraph& egraph, std::vector<double>& costs,
                     const OperatorProfiles& profiles, const SaturateLimits& limits)
    : session_(session),
      egraph_(egraph),
      costs_(costs),
      profiles_(profiles),
      limits_(limits),
      scheduler_(limits.match_limit, limits.ban_length),
      spare_seconds_(session.SpareSeconds()) {}

absl::Status Saturator::Run(const EGraphContext& start, const std::vector<ClassId>& roots) {
  roots_ = roots;
  start_ = start.graph;
  std::vector<ContextPointer> contexts = {std::make_shared<const EGraphContext>(start)};
  while (!Stopped()) {
    if (round_ == limits_.max_rounds) {
      session_.Stop(StopReason::kRoundLimit);
      break;
    }
    std::vector<Expansion> expansions;
    MENDEL_RETURN_IF_ERROR(RunRound(contexts, expansions));
    ++round_;
    MENDEL_ASSIGN_OR_RETURN(contexts, MakeContexts(std::move(expansions)));
    if (contexts.empty() && !scheduler_.Release(round_)) {
      const bool waiting = std::any_of(waiting_.begin(), waiting_.end(),
                                       [](const auto& matches) { return !matches.second.empty(); });
      if (!waiting) break;
    }
  }
  if (left_out_) session_.Stop(StopReason::kBudget);
  return absl::OkStatus();
}

bool Saturator::Stopped() {
  if (const auto limit = egraph_.Exceeded()) session_.Stop(ReasonOf(*limit));
  if (spare_seconds_ <= 0 || !session_.Affords(limits_.add_share * spare_seconds_))
    left_out_ = true;
  return session_.Stopped() || left_out_;
}

absl::Status Saturator::RunRound(const std::vector<ContextPointer>& contexts,
                                 std::vector<Expansion>& expansions) {
  for (const ContextPointer& context : contexts) CollectMatches(context);
  MENDEL_ASSIGN_OR_RETURN(auto classes, AdmittedClasses());
  std::vector<std::pair<std::string, MatchClass>> sorted(classes.begin(), classes.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.first_of_all, a.second.seconds) >
           std::pair(b.second.first_of_all, b.second.seconds);
  });
  for (const auto& [key, matches] : sorted) {
    if (Stopped()) break;  // what was added is made congruent, too
    session_.Report(std::string(matches.matches[0].rule->name));
    MENDEL_ASSIGN_OR_RETURN(
        const Verified verified,
        VerifyOnce(matches.matches[0], key,
                   matches.seconds / static_cast<double>(matches.matches.size())));
    if (!verified.usable) continue;
    Expansion expansion{
        matches.seconds * (1 - verified.times.ratio), key, matches.matches[0].context, {}};
    MENDEL_RETURN_IF_ERROR(AddMatches(matches, verified, expansion));
    if (verified.times.ratio < kExpandBelow && !expansion.nodes.empty())
      expansions.push_back(std::move(expansion));
  }
  MENDEL_RETURN_IF_ERROR(egraph_.Rebuild());
  for (size_t i = 0; i < costs_.size();
       ++i) {  // what became one e-node costs what the cheaper one did
    const size_t kept = static_cast<size_t>(egraph_.Canonical(static_cast<ENodeId>(i)));
    costs_[kept] = std::min(costs_[kept], costs_[i]);
  }
  return absl::OkStatus();
}

/// New places of every rule wait for the scheduler.
void Saturator::CollectMatches(const ContextPointer& context) {
  const Graph& graph = context->graph;
  for (const Rule* rule : RulesOfSearch(session_.options(), true)) {
    for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
      for (Match& match : rule->match(graph, node, session_.predictor())) {
        std::set<ENodeId> enodes;
        for (int32_t id : match.nodes) {
          const ENodeId enode = context->nodes[static_cast<size_t>(id)];
          enodes.insert(enode < 0
                            ? enode
                            : egraph_.Canonical(enode));  // negative: an input that nothing reads
        }
        std::string name(rule->name);
        for (const auto& [choice, value] : match.choices) name += Cat(" ", choice, "=", value);
        for (ENodeId id : enodes) name += Cat(" ", id);
        if (seen_.insert(std::move(name)).second)
          waiting_[std::string(rule->name)].push_back({context, rule, std::move(match)});
      }
    }
  }
}

absl::StatusOr<std::map<std::string, Saturator::MatchClass>> Saturator::AdmittedClasses() {
  std::map<std::string, MatchClass> classes;
  for (auto& [rule, matches] : waiting_) {
    if (matches.empty() || scheduler_.Banned(rule, round_)) continue;
    if (!scheduler_.Admit(rule, static_cast<int64_t>(matches.size()), round_)) continue;
    for (RuleMatch& match : matches) {
      auto key = MatchKey(match.context->graph, *match.rule, match.match);
      if (absl::IsInternal(key.status())) return key.status();
      if (!key.ok()) continue;  // not convex here
      MatchClass& same = classes[*std::move(key)];
      same.seconds += SecondsOf(match);
      same.first_of_all =
          same.first_of_all || session_.TriedFirst(match.context->graph, *match.rule, match.match);
      same.matches.push_back(std::move(match));
    }
    matches.clear();
  }
  return classes;
}

double Saturator::SecondsOf(const RuleMatch& match) const {
  std::set<ENodeId> enodes;
  for (int32_t id : match.match.nodes) enodes.insert(match.context->nodes[static_cast<size_t>(id)]);
  double seconds = 0;
  for (ENodeId id : enodes) seconds += id < 0 ? 0 : costs_[static_cast<size_t>(id)];
  return seconds;
}

absl::StatusOr<Saturator::Verified> Saturator::VerifyOnce(const RuleMatch& match,
                                                          const std::string& key, double seconds) {
  const auto known = verified_.find(key);
  if (known != verified_.end()) return known->second;
  Verified& verified = verified_[key];
  const std::optional<Mutant> mutant =
      session_.Make(match.context->graph, *match.rule, match.match);
  if (!mutant.has_value()) return verified;
  Alternative alternative;
  MENDEL_ASSIGN_OR_RETURN(verified.usable, session_.VerifyCandidate(*mutant, seconds, alternative));
  if (!verified.usable) return verified;
  const double before = Sum(profiles_.NodeSeconds(mutant->original)),
               after = Sum(profiles_.NodeSeconds(alternative.graph));
  verified.times.ratio = before > 0 ? after / before : after > 0 ? kMeasureBelow : 1;
  // A guess does not make an alternative hopeless.
  const bool hopeless = profiles_.trained() && verified.times.ratio > kMeasureBelow;
  if (!limits_.measure || hopeless || seconds <= 0) return verified;
  // Measurements that the time does not allow are replaced by predictions.
  if (!session_.Affords(session_.AloneSeconds(seconds) + limits_.measure_share * spare_seconds_))
    return verified;
  MENDEL_ASSIGN_OR_RETURN(verified.times,
                          session_.MeasureAlone(mutant->original, alternative.graph, seconds,
                                                Cat("a mutant of rule ", match.rule->name)));
  verified.measured = true;
  verified.usable = verified.times.ratio < 1e9;  // else it was dropped for its numbers
  return verified;
}

absl::Status Saturator::AddMatches(const MatchClass& matches, const Verified& verified,
                                   Expansion& expansion) {
  for (const RuleMatch& match : matches.matches) {
    if (egraph_.Exceeded().has_value()) break;
    const std::optional<Mutant> mutant =
        session_.Make(match.context->graph, *match.rule, match.match);
    if (!mutant.has_value()) continue;
    // The verdict is stored, so this is quick; the weights have other names at every place.
    MENDEL_ASSIGN_OR_RETURN(const Alternative alternative,
                            Verify(*mutant, session_.Limits(), session_.cache()));
    if (alternative.verification != Verification::kEqual &&
        alternative.verification != Verification::kCorrected)
      continue;
    MENDEL_RETURN_IF_ERROR(AddAlternative(match, *mutant, alternative, verified, expansion));
  }
  return absl::OkStatus();
}

absl::Status Saturator::AddAlternative(const RuleMatch& match, const Mutant& mutant,
                                       const Alternative& alternative, const Verified& verified,
                                       Expansion& expansion) {
  const auto class_of = [&](ValueId value) {
    const ENodeId id = match.context->nodes[static_cast<size_t>(value.node)];
    return egraph_.Find(egraph_.node(id).outputs[static_cast<size_t>(value.output)]);
  };
  std::vector<ClassId> inputs;
  for (ValueId value : mutant.place.inputs) inputs.push_back(class_of(value));
  const double total = verified.times.ratio * SecondsOf(match);
  const size_t first_new = egraph_.node_space();
  const int32_t number = static_cast<int32_t>(applications_.size());
  std::vector<ENodeId> enodes;
  MENDEL_ASSIGN_OR_RETURN(const auto where,
                          egraph_.AddGraph(alternative.graph, inputs, number, &enodes));
  for (size_t k = 0; k < mutant.place.outputs.size(); ++k) {
    const ValueId value = alternative.graph.outputs()[k].value;
    const ClassId made = where[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
    MENDEL_RETURN_IF_ERROR(egraph_.Merge(class_of(mutant.place.outputs[k]), made).status());
  }
  SetCosts(alternative.graph, enodes, first_new, total);
  applications_.push_back(DescribeMutant(match.context->graph, mutant, alternative,
                                         verified.times.original_ns, verified.times.mutant_ns));
  if (egraph_.node_space() == first_new) return absl::OkStatus();
  for (ENodeId id : enodes) {
    if (id >= 0) expansion.nodes.insert(id);
  }
  return absl::OkStatus();
}

/// The alternative costs `total` seconds. Its e-nodes that existed before have known costs; the
/// others share the rest as predicted.
void Saturator::SetCosts(const Graph& alternative, const std::vector<ENodeId>& enodes,
                         size_t first_new, double total) {
  const std::vector<double> predicted = profiles_.NodeSeconds(alternative);
  const std::vector<bool> constant = ConstantExpressions(alternative);
  costs_.resize(egraph_.node_space(), 0);
  double known = 0, fresh = 0;
  std::map<size_t, double> share;
  for (size_t i = 0; i < enodes.size(); ++i) {
    if (enodes[i] < 0 || constant[i]) continue;
    const size_t id = static_cast<size_t>(enodes[i]);
    if (id < first_new) {
      known += costs_[id];
    } else if (!alternative.nodes()[i].op->is_view) {
      share[id] += predicted[i];
      fresh += predicted[i];
    }
  }
  const double rest = std::max(total - known, kLeastShare * total);
  for (const auto& [id, seconds] : share) {
    costs_[id] = fresh > 0 ? rest * seconds / fresh : rest / static_cast<double>(share.size());
  }
}

/// Graphs that use what this round added, largest expected gain first: rules find matches on top of
/// it.
absl::StatusOr<std::vector<Saturator::ContextPointer>> Saturator::MakeContexts(
    std::vector<Expansion> expansions) {
  std::stable_sort(expansions.begin(), expansions.end(),
                   [](const auto& a, const auto& b) { return a.gain > b.gain; });
  std::vector<ContextPointer> contexts;
  for (const Expansion& expansion : expansions) {
    if (static_cast<int>(contexts.size()) == limits_.max_contexts || Stopped()) break;
    std::vector<double> preference(egraph_.node_space(), kOther);
    for (ENodeId id : expansion.base->nodes) {
      if (id >= 0) preference[static_cast<size_t>(egraph_.Canonical(id))] = kBase;
    }
    for (ENodeId id : expansion.nodes) {
      const size_t at = static_cast<size_t>(egraph_.Canonical(id));
      if (preference[at] > kBase) preference[at] = kWanted;
    }
    for (size_t i = 0; i < preference.size(); ++i) {  // weights cost nothing and need no choice
      const ENode& node = egraph_.node(static_cast<ENodeId>(i));
      const bool constant =
          !IsInput(node.node) && std::all_of(node.operands.begin(), node.operands.end(),
                                             [&](ClassId c) { return egraph_.IsConstantClass(c); });
      if (constant) preference[i] = 0;
    }
    MENDEL_ASSIGN_OR_RETURN(const Extraction chosen,
                            ExtractProgram(egraph_, roots_, preference, {.seconds = 0}));
    MENDEL_ASSIGN_OR_RETURN(SelectedGraph made, ToGraph(egraph_, chosen.selection, roots_, start_));
    contexts.push_back(std::make_shared<const EGraphContext>(
        EGraphContext{std::move(made.graph), std::move(made.nodes)}));
  }
  return contexts;
}

std::vector<plan::AppliedMutant> Saturator::MutantsIn(const std::vector<ENodeId>& nodes) const {
  std::set<int32_t> origins, of_views;  // a view is often made by one application and used by many
  for (ENodeId id : nodes) {
    if (id < 0 || egraph_.node(id).origin < 0) continue;
    const ENode& node = egraph_.node(id);
    const bool constant = std::all_of(node.operands.begin(), node.operands.end(),
                                      [&](ClassId c) { return egraph_.IsConstantClass(c); });
    if (!constant) (node.node.op->is_view ? of_views : origins).insert(node.origin);
  }
  if (origins.empty()) origins = of_views;
  std::vector<plan::AppliedMutant> mutants;
  for (int32_t origin : origins) mutants.push_back(applications_[static_cast<size_t>(origin)]);
  return mutants;
}

}  // namespace mendel
