// Choice of the algorithm that runs each node best.

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "base/work.h"
#include "graph/text.h"
#include "optimizer/profile/profiler.h"
#include "optimizer/profile/profiler_times.h"
#include "optimizer/profile/trial.h"

namespace mendel {
namespace {

constexpr double kCombinations = 8;  // time is kept for as many measurements of combined algorithms
constexpr double kShortest = 0.05;   // seconds
// A program runs twice only if more runs than this fit into its share of the time.
constexpr double kFewRuns = 4;
// A place further down in the backend's ranking takes so much of an algorithm's expected gain.
constexpr double kRankDoubt = 1.0 / 8;
// Times are compared if so many first runs fit: the standard's, and a program's with the standard
// beside it. Otherwise the backend's favorites are chosen unmeasured.
constexpr double kFirstRuns = 3;

/// The timed steps of a program by node, so that a node needs no look at all of them.
class StepsByNode {
 public:
  StepsByNode(std::span<const Step> steps, std::span<const double> seconds)
      : steps_(steps), seconds_(seconds) {
    size_t begin = 0;  // of the steps since the last one that computes nodes
    for (size_t k = 0; k < steps.size(); ++k) {
      for (const int32_t node : steps[k].nodes) computed_[node].emplace_back(begin, k + 1);
      if (!steps[k].nodes.empty()) begin = k + 1;
      for (const int32_t node : steps[k].requested_by)
        computed_or_asked_[node].emplace_back(k, k + 1);
    }
    for (const auto& [node, ranges] : computed_) {
      auto& all = computed_or_asked_[node];
      all.insert(all.end(), ranges.begin(), ranges.end());
    }
  }

  /// Nodes of the first step that computes `node`; empty when no step names it.
  std::span<const int32_t> NodesWith(int32_t node) const {
    const auto it = computed_.find(node);
    if (it == computed_.end()) return {};
    return steps_[it->second.front().second - 1].nodes;
  }

  /// SecondsOfNodes, of the steps that concern `nodes`.
  double Seconds(const std::set<int32_t>& nodes) const {
    std::set<std::pair<size_t, size_t>> ranges;
    for (const int32_t node : nodes) {
      const auto it = computed_or_asked_.find(node);
      if (it != computed_or_asked_.end()) ranges.insert(it->second.begin(), it->second.end());
    }
    double sum = 0;
    size_t done = 0;  // ranges may contain each other
    for (const auto& [begin, end] : ranges) {
      CountWork(static_cast<int64_t>(end - begin));
      const size_t from = std::max(begin, done);
      if (from >= end) continue;
      sum += SecondsOfNodes(steps_.subspan(from, end - from), seconds_.subspan(from, end - from),
                            nodes);
      done = end;
    }
    return sum;
  }

 private:
  using Ranges = std::vector<std::pair<size_t, size_t>>;
  std::span<const Step> steps_;
  std::span<const double> seconds_;
  std::map<int32_t, Ranges> computed_, computed_or_asked_;
};

/// Choices that are timed in one program.
struct Together {
  Algorithms algorithms;
  /// Arithmetic of the nodes, less where the backend ranks others of the same kind before these.
  double expected_gain = 0;
};

/// The fewest programs that time every offer, the largest expected gain first. A program has
/// algorithms of one kind, which suit their neighbors' layouts: the first of each node, the second
/// of each, and so on. The first ones of most kinds come before the second of any: under a class of
/// 16 bits the fast kind is one of many, and a short budget ends before all are timed. For the same
/// reason the backend's favorites come before others that more nodes have.
std::vector<Together> Programs(const Graph& graph, const AlgorithmOffers& offers,
                               const Backend& backend) {
  std::map<std::string, std::vector<Together>, std::greater<>>
      programs;  // the default's kind comes last among equals
  for (const auto& [node, names] : offers) {
    const OpDefinition& op = *graph.node(node).op;
    const double flops =
        WithView(graph, node, [&](const NodeView& view) { return CostOf(op, view).flops; });
    std::map<std::string, size_t> count;
    for (size_t rank = 0; rank < names.size(); ++rank) {
      const std::string kind = backend.AlgorithmKind(names[rank]);
      std::vector<Together>& like = programs[kind];
      const size_t at = count[kind]++;
      if (at == like.size()) like.emplace_back();
      like[at].algorithms[node] = names[rank];
      like[at].expected_gain +=
          flops / static_cast<double>(at + 1) / (1 + kRankDoubt * static_cast<double>(rank));
    }
  }
  std::vector<Together> sorted;
  for (auto& [kind, like] : programs)
    sorted.insert(sorted.end(), std::make_move_iterator(like.begin()),
                  std::make_move_iterator(like.end()));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& x, const auto& y) { return x.expected_gain > y.expected_gain; });
  return sorted;
}

/// The same algorithms, a program a name.
std::map<std::string, Algorithms> ByName(const Algorithms& algorithms) {
  std::map<std::string, Algorithms> by_name;
  for (const auto& [node, name] : algorithms) by_name[name][node] = name;
  return by_name;
}

}  // namespace

std::string SignatureOf(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  std::string text = Cat(node.op->name, " ", PrintAttributes(node.attrs));
  for (const TensorType& type : graph.InputTypes(id)) text += Cat(" ", TypeString(type));
  return text;
}

absl::StatusOr<Algorithms> Profiler::ChooseAlgorithms(const Graph& graph, double max_seconds) {
  const Offers offers = AllOffers(graph);
  if (offers.empty()) return Algorithms{};
  std::set<std::string> sorted;
  for (const auto& [node, names] : offers) sorted.insert(names.begin(), names.end());
  std::string names;
  for (const std::string& name : sorted) names += name + " ";
  const std::string key = Sha256Hex(Cat(names, Key({graph, {}})));
  // "3": before, short budgets of long programs left no time for a single algorithm.
  const std::string cut_key = Cat(key, " ", budget_, " 3");
  for (const std::string& stored_key : {key, cut_key}) {
    const auto stored = cache_.Get("algorithms", stored_key);
    if (!stored.has_value()) continue;
    if (const auto wrong = cache_.Get("wrong", stored_key)) {
      std::istringstream lines(*wrong);
      for (std::string name, difference;
           std::getline(lines, name) && std::getline(lines, difference);)
        Warn(name, difference);
    }
    MENDEL_ASSIGN_OR_RETURN(Algorithms chosen, ParseAlgorithms(*stored));
    NoteSignatures(graph, offers, chosen);
    return chosen;
  }
  if (options_.error_on_miss)
    return absl::NotFoundError("no stored measurement of the algorithms of this graph");
  Offers open = offers;
  const Algorithms known = TakeKnown(graph, open);
  bool cut = open.size() < offers.size();  // what was met before depends on the budget, too
  Algorithms chosen = known;
  if (!open.empty()) {
    MENDEL_ASSIGN_OR_RETURN(chosen, options_.costs ? PredictAlgorithms(graph, open, known, cut)
                                                   : MeasureAlgorithms(graph, open, known, key,
                                                                       cut_key, max_seconds, cut));
    NoteSignatures(graph, open, chosen);
  }
  MENDEL_RETURN_IF_ERROR(cache_.Put("algorithms", cut ? cut_key : key, PrintAlgorithms(chosen)));
  return chosen;
}

absl::StatusOr<Algorithms> Profiler::MeasureAlgorithms(const Graph& graph, const Offers& offers,
                                                       const Algorithms& known,
                                                       const std::string& key,
                                                       const std::string& cut_key,
                                                       double max_seconds, bool& cut) {
  const auto first = first_seconds_.find(Key({graph, known}));
  if (!kept_.has_value() && first != first_seconds_.end() &&
      deadline_.SecondsLeft() < kFirstRuns * first->second) {
    cut = true;
    Algorithms favorites = known;
    for (const auto& [node, names] : offers) favorites[node] = names.front();
    return favorites;
  }
  AlgorithmTimes times{.trial = Trial(graph),
                       .standard = nullptr,
                       .want = {},
                       .known = known,
                       .of_nodes = {},
                       .wrong = {}};
  MENDEL_ASSIGN_OR_RETURN(const bool all, TimeOffers(graph, offers, max_seconds, times));
  MENDEL_ASSIGN_OR_RETURN(Algorithms chosen, CombineAlgorithms(graph, offers, max_seconds, times));
  cut = cut || !all || times.cut;
  if (!times.wrong.empty())
    MENDEL_RETURN_IF_ERROR(cache_.Put("wrong", cut ? cut_key : key, times.wrong));
  return chosen;
}

absl::StatusOr<Algorithms> Profiler::PredictAlgorithms(const Graph& graph, const Offers& offers,
                                                       const Algorithms& known, bool& cut) const {
  std::vector<AlgorithmOffers> like;
  std::map<std::string, size_t> places;
  for (const auto& [node, names] : offers) {
    const auto [place, is_new] = places.try_emplace(SignatureOf(graph, node), like.size());
    if (is_new) like.emplace_back();
    like[place->second][node] = names;
  }
  const auto seconds = [&](const Algorithms& algorithms) -> absl::StatusOr<double> {
    return PretendedMilliseconds({graph, algorithms});
  };
  return CheapestAlgorithms(like, known, seconds, deadline_, cut);
}

absl::StatusOr<Algorithms> Profiler::PredictedAlgorithms(const Graph& graph) const {
  bool cut = false;  // what was found by then is as good a guess as any
  return PredictAlgorithms(graph, AllOffers(graph), {}, cut);
}

Profiler::Offers Profiler::AllOffers(const Graph& graph) const {
  Offers offers;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    for (const std::string& name : backend_.Algorithms(graph, node, options_.numerics)) {
      if (!kept_.has_value() || kept_->count(name) > 0) offers[node].push_back(name);
    }
  }
  return offers;
}

absl::StatusOr<bool> Profiler::TimeOffers(const Graph& graph, const Offers& offers,
                                          double max_seconds, AlgorithmTimes& times) {
  const std::vector<Together> programs = Programs(graph, offers, backend_);
  const Stopwatch clock;
  MENDEL_ASSIGN_OR_RETURN(times.standard, Compile({graph, times.known}));
  MENDEL_ASSIGN_OR_RETURN(const OutputBytes* outputs, times.trial.Run(*times.standard));
  times.want = *outputs;
  times.first_seconds = clock.Seconds();
  times.of_programs[times.known].Add(1);
  ++measured_;
  double left =
      static_cast<double>(programs.size() + RegionsOf(graph, offers).size()) + kCombinations;
  for (const Together& program : programs) {
    if (deadline_.SecondsLeft() < 2 * times.first_seconds) return false;
    const double share =
        std::clamp(deadline_.SecondsLeft() / left--, std::min(kShortest, max_seconds), max_seconds);
    MENDEL_RETURN_IF_ERROR(TimeTogether(graph, program.algorithms, share, times));
  }
  return true;
}

absl::StatusOr<std::optional<Profiler::Steps>> Profiler::TimeSteps(const Graph& graph,
                                                                   const Algorithms& algorithms,
                                                                   double max_seconds,
                                                                   AlgorithmTimes& times,
                                                                   std::string& difference) {
  Algorithms all = algorithms;
  all.insert(times.known.begin(), times.known.end());
  const auto executable = Compile({graph, all});
  ++measured_;
  const Stopwatch clock;
  const absl::StatusOr<const OutputBytes*> have =
      executable.ok() ? times.trial.Run(**executable) : executable.status();
  difference = have.ok() ? Difference(graph, times.want, **have) : Failed(have.status());
  if (!difference.empty()) return std::nullopt;
  Executable* const pair[] = {times.standard.get(), executable->get()};
  // One run is enough where it takes a good part of the time: its like in other places outweighs
  // what disturbs a step.
  const int runs = kFewRuns * clock.Seconds() > max_seconds ? 1 : 2;
  MENDEL_ASSIGN_OR_RETURN(
      auto medians, times.trial.StepMedians(
                        pair, {.min_runs = runs, .seconds = max_seconds, .deadline = deadline_}));
  const auto total = [](const std::vector<double>& seconds) {
    return std::reduce(seconds.begin(), seconds.end());
  };
  times.of_programs[all].Add(total(medians[1]) / total(medians[0]));
  return Steps{(*executable)->steps(), std::move(medians[0]), std::move(medians[1])};
}

absl::Status Profiler::TimeTogether(const Graph& graph, const Algorithms& algorithms,
                                    double max_seconds, AlgorithmTimes& times) {
  std::string difference;
  MENDEL_ASSIGN_OR_RETURN(const std::optional<Steps> steps,
                          TimeSteps(graph, algorithms, max_seconds, times, difference));
  if (!steps.has_value()) {
    const std::map<std::string, Algorithms> by_name = ByName(algorithms);
    for (const auto& [name, alone] : by_name) {
      if (by_name.size() == 1) {
        const std::string what = Cat("algorithm ", name);
        // A library may offer an algorithm that it then cannot run. That is one choice less, which
        // may work another time.
        if (!difference.starts_with(kFailed)) times.wrong += Cat(what, "\n", difference, "\n");
        Warn(what, difference);
      } else if (deadline_.SecondsLeft() >= 2 * times.first_seconds) {  // some of them are right
        MENDEL_RETURN_IF_ERROR(
            TimeTogether(graph, alone, max_seconds / static_cast<double>(by_name.size()), times));
      }
    }
    return absl::OkStatus();
  }
  Credit(graph, algorithms, *steps, times);
  return absl::OkStatus();
}

void Profiler::Credit(const Graph& graph, const Algorithms& algorithms, const Steps& steps,
                      AlgorithmTimes& times) {
  struct Seconds {
    double standard = 0, own = 0;
  };
  const StepsByNode standard_steps(times.standard->steps(), steps.standard),
      own_steps(steps.steps, steps.seconds);
  std::map<std::pair<std::string, std::string>, Seconds> sums;
  for (const auto& [node, name] : algorithms) {
    // A later node's algorithm may compute this one, too, whatever its name: the time is then that
    // one's.
    const std::span<const int32_t> with_it = own_steps.NodesWith(node);
    const auto last = std::max_element(with_it.begin(), with_it.end(), [&](int32_t a, int32_t b) {
      return algorithms.count(a) != algorithms.count(b) ? algorithms.count(a) < algorithms.count(b)
                                                        : a < b;
    });
    if (last != with_it.end() && *last != node) continue;
    std::set<int32_t> nodes;
    for (const StepsByNode* of : {&standard_steps, &own_steps}) {
      for (const int32_t with : of->NodesWith(node)) nodes.insert(with);
    }
    const double standard = standard_steps.Seconds(nodes);
    if (nodes.empty() || standard <= 0) continue;
    Seconds& sum = sums[{SignatureOf(graph, node), name}];
    sum.standard += standard;
    sum.own += own_steps.Seconds(nodes);
  }
  for (const auto& [what, sum] : sums)
    times.of_nodes[what.first][what.second].Add(sum.own / sum.standard);
}

Algorithms Profiler::TakeKnown(const Graph& graph, Offers& offers) const {
  Algorithms chosen;
  for (auto it = offers.begin(); it != offers.end();) {
    const auto& [node, names] = *it;
    const auto known = by_signature_.find(SignatureOf(graph, node));
    if (known == by_signature_.end()) {
      ++it;
      continue;
    }
    if (std::find(names.begin(), names.end(), known->second) != names.end())
      chosen[node] = known->second;
    it = offers.erase(it);
  }
  return chosen;
}

void Profiler::NoteSignatures(const Graph& graph, const Offers& offers, const Algorithms& chosen) {
  std::map<std::string, std::map<std::string, int>> votes;
  for (const auto& [node, names] : offers) {
    const auto it = chosen.find(node);
    ++votes[SignatureOf(graph, node)][it == chosen.end() ? "" : it->second];
  }
  for (const auto& [signature, names] : votes) {
    const auto most =
        std::max_element(names.begin(), names.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    by_signature_.emplace(signature, most->first);
  }
}

Algorithms Profiler::FirstRanked(const Graph& graph) const {
  Algorithms algorithms;
  for (const auto& [node, names] : AllOffers(graph)) algorithms[node] = names.front();
  return algorithms;
}

Algorithms Profiler::Everywhere(const Graph& graph, const std::string& name) const {
  Algorithms algorithms;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    const std::vector<std::string> names = backend_.Algorithms(graph, node, options_.numerics);
    if (std::find(names.begin(), names.end(), name) != names.end()) algorithms[node] = name;
  }
  return algorithms;
}

}  // namespace mendel
