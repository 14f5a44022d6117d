// Which algorithm runs each node best.

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <sstream>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "graph/text.h"
#include "optimizer/profiler.h"
#include "optimizer/trial.h"

namespace mendel {
namespace {

constexpr double kNoise = 0.97;      // an algorithm must win by more than measurements repeat
constexpr double kCombinations = 4;  // time is kept for as many measurements of combined algorithms
constexpr double kShortest = 0.05;   // seconds
constexpr double kTie = 1.1;         // an own kernel that loses less than this alone may win among others of its kind

/// Nodes of the step that computes `node`; empty when no step names it.
std::vector<int32_t> NodesWith(const std::vector<Step>& steps, int32_t node) {
  for (const Step& step : steps) {
    if (std::find(step.nodes.begin(), step.nodes.end(), node) != step.nodes.end()) return step.nodes;
  }
  return {};
}

/// Seconds of the steps that compute any of `nodes`, with the reorders of their operands right before them.
double SecondsOf(const std::vector<Step>& steps, const std::vector<double>& seconds, const std::set<int32_t>& nodes) {
  double sum = 0;
  for (size_t k = 0; k < steps.size(); ++k) {
    const std::vector<int32_t>& own = steps[k].nodes;
    if (std::none_of(own.begin(), own.end(), [&](int32_t node) { return nodes.count(node) > 0; })) continue;
    sum += seconds[k];
    for (size_t before = k; before-- > 0 && steps[before].nodes.empty();) sum += seconds[before];
  }
  return sum;
}

/// The backend's own kernels follow each other's layouts, and compute parts of concatenations in place: taken together they may win
/// where each alone only ties.
bool IsOwn(const std::string& algorithm) { return algorithm.find("-own") != std::string::npos; }

/// What the time of a node depends on besides its neighbours: operator, attributes and types.
std::string Signature(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  std::string text = Cat(node.op->name, " ", PrintAttributes(node.attrs));
  for (const TensorType& type : graph.InputTypes(id)) text += Cat(" ", TypeString(type));
  return text;
}

/// Names by what they promise, the most first.
std::vector<std::string> Order(const std::map<std::string, double>& promise) {
  std::vector<std::string> names;
  for (const auto& [name, value] : promise) names.push_back(name);
  std::stable_sort(names.begin(), names.end(), [&](const auto& a, const auto& b) { return promise.at(a) > promise.at(b); });
  return names;
}

}  // namespace

/// What is known while the algorithms of a graph are timed one after the other.
struct Profiler::AlgorithmTimes {
  Trial trial;
  std::unique_ptr<Executable> standard;
  OutputBytes want;
  Algorithms known;          ///< choices that are made already; the standard has them, and every program that is compared with it
  double first_seconds = 0;  ///< compiling and running once
  std::map<int32_t, std::map<std::string, double>> ratio;  ///< to the default's seconds, by node and algorithm
  std::string wrong;  ///< two lines for each algorithm that was dropped: its name, the difference
};

absl::StatusOr<Algorithms> Profiler::ChooseAlgorithms(const Graph& graph, double max_seconds) {
  const Offers offers = AllOffers(graph);
  if (offers.empty()) return Algorithms{};
  std::set<std::string> sorted;
  for (const auto& [node, names] : offers) sorted.insert(names.begin(), names.end());
  std::string names;
  for (const std::string& name : sorted) names += name + " ";
  const std::string key = Sha256Hex(Cat(names, Key({graph, {}})));
  const std::string cut_key = Cat(key, " ", budget_);
  for (const std::string& stored_key : {key, cut_key}) {
    const auto stored = cache_.Get("algorithms", stored_key);
    if (!stored.has_value()) continue;
    if (const auto wrong = cache_.Get("wrong", stored_key)) {
      std::istringstream lines(*wrong);
      for (std::string name, difference; std::getline(lines, name) && std::getline(lines, difference);) Warn(name, difference);
    }
    MENDEL_ASSIGN_OR_RETURN(Algorithms chosen, ParseAlgorithms(*stored));
    NoteSignatures(graph, offers, chosen);
    return chosen;
  }
  if (options_.error_on_miss) return absl::NotFoundError("no stored measurement of the algorithms of this graph");
  Offers open = offers;
  const Algorithms known = TakeKnown(graph, open);
  bool cut = open.size() < offers.size();  // what was met before depends on the budget, too
  Algorithms chosen = known;
  if (!open.empty()) {
    MENDEL_ASSIGN_OR_RETURN(chosen, options_.costs ? PredictAlgorithms(graph, open, known, cut)
                                                   : MeasureAlgorithms(graph, open, known, key, cut_key, max_seconds, cut));
    NoteSignatures(graph, open, chosen);
  }
  MENDEL_RETURN_IF_ERROR(cache_.Put("algorithms", cut ? cut_key : key, PrintAlgorithms(chosen)));
  return chosen;
}

absl::StatusOr<Algorithms> Profiler::MeasureAlgorithms(const Graph& graph, const Offers& offers, const Algorithms& known,
                                                       const std::string& key, const std::string& cut_key, double max_seconds,
                                                       bool& cut) {
  AlgorithmTimes times{.trial = Trial(graph), .standard = nullptr, .want = {}, .known = known, .ratio = {}, .wrong = {}};
  MENDEL_ASSIGN_OR_RETURN(const bool all, TimeOffers(graph, offers, max_seconds, times));
  cut = cut || !all;
  if (!times.wrong.empty()) MENDEL_RETURN_IF_ERROR(cache_.Put("wrong", cut ? cut_key : key, times.wrong));
  return CombineAlgorithms(graph, max_seconds, times);
}

absl::StatusOr<Algorithms> Profiler::PredictAlgorithms(const Graph& graph, const Offers& offers, const Algorithms& known,
                                                       bool& cut) const {
  std::vector<AlgorithmOffers> like;
  std::map<std::string, size_t> places;
  for (const auto& [node, names] : offers) {
    const auto [place, is_new] = places.try_emplace(Signature(graph, node), like.size());
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

absl::StatusOr<bool> Profiler::TimeOffers(const Graph& graph, const Offers& offers, double max_seconds, AlgorithmTimes& times) {
  std::map<std::string, Algorithms> by_name;  // one variant an algorithm, used wherever it can be
  std::map<std::string, double> promise;      // arithmetic of its nodes, less where the backend ranks others before it
  for (const auto& offer : offers) {
    const int32_t node = offer.first;
    const double flops = WithView(graph, node, [&](const NodeView& view) { return CostOf(*graph.node(node).op, view).flops; });
    double rank = 0;
    for (const std::string& name : offer.second) {
      by_name[name][node] = name;
      promise[name] += flops / ++rank;
    }
  }
  const Stopwatch clock;
  MENDEL_ASSIGN_OR_RETURN(times.standard, Compile({graph, times.known}));
  MENDEL_ASSIGN_OR_RETURN(const OutputBytes* outputs, times.trial.Run(*times.standard));
  times.want = *outputs;
  times.first_seconds = clock.Seconds();
  ++measured_;
  double left = static_cast<double>(promise.size()) + kCombinations;
  for (const std::string& name : Order(promise)) {
    if (deadline_.SecondsLeft() < 2 * times.first_seconds) return false;
    const double share = std::clamp(deadline_.SecondsLeft() / left--, std::min(kShortest, max_seconds), max_seconds);
    MENDEL_RETURN_IF_ERROR(TimeAlgorithm(graph, name, by_name[name], share, times));
  }
  return true;
}

absl::StatusOr<Algorithms> Profiler::CombineAlgorithms(const Graph& graph, double max_seconds, AlgorithmTimes& times) {
  Algorithms each, tied, own;
  for (const auto& [node, ratios] : times.ratio) {
    double least = kNoise, least_own = std::numeric_limits<double>::infinity();
    for (const auto& [name, ratio] : ratios) {
      if (ratio < least) least = ratio, each[node] = name;
      if (IsOwn(name) && ratio < least_own) least_own = ratio, own[node] = name;
    }
    if (least_own < kTie) tied[node] = own[node];
  }
  for (Algorithms* choice : {&each, &tied, &own}) {
    if (!choice->empty()) choice->insert(times.known.begin(), times.known.end());
  }
  if (each.empty()) each = times.known;
  std::vector<Algorithms> candidates = {each};
  for (const Algorithms& more : {tied, own}) {
    if (!more.empty() && std::find(candidates.begin(), candidates.end(), more) == candidates.end()) candidates.push_back(more);
  }
  // As above: nothing is begun that cannot be paid for.
  if (candidates.size() == 1 || deadline_.SecondsLeft() < 6 * times.first_seconds) return each;
  // One after the other beside the default, which all are held against: packed weights of three would be most of a search's memory.
  const double seconds = max_seconds / static_cast<double>(candidates.size());
  double least = std::numeric_limits<double>::infinity();
  size_t best = 0;
  for (size_t k = 0; k < candidates.size(); ++k) {
    const auto executable = Compile({graph, candidates[k]});
    ++measured_;
    const absl::StatusOr<const OutputBytes*> have = executable.ok() ? times.trial.Run(**executable) : executable.status();
    if (!have.ok()) {
      Warn("a choice of algorithms", Failed(have.status()));
      continue;
    }
    if (!Difference(graph, times.want, **have).empty()) return each;
    Executable* const pair[] = {times.standard.get(), executable->get()};
    MENDEL_ASSIGN_OR_RETURN(const auto medians,
                            times.trial.StepMedians(pair, {.min_runs = 3, .seconds = seconds, .deadline = deadline_}));
    const double ratio = std::reduce(medians[1].begin(), medians[1].end()) / std::reduce(medians[0].begin(), medians[0].end());
    if (ratio < least) least = ratio, best = k;
  }
  return candidates[best];
}

absl::Status Profiler::TimeAlgorithm(const Graph& graph, const std::string& name, const Algorithms& algorithms, double max_seconds,
                                     AlgorithmTimes& times) {
  Algorithms all = algorithms;
  all.insert(times.known.begin(), times.known.end());
  const auto executable = Compile({graph, std::move(all)});
  ++measured_;
  const absl::StatusOr<const OutputBytes*> have = executable.ok() ? times.trial.Run(**executable) : executable.status();
  const std::string what = Cat("algorithm ", name);
  // A library may offer what it then cannot run: that is one choice less, and may be another time.
  const std::string difference = have.ok() ? Difference(graph, times.want, **have) : Failed(have.status());
  if (!difference.empty()) {
    if (have.ok()) times.wrong += Cat(what, "\n", difference, "\n");
    Warn(what, difference);
    return absl::OkStatus();
  }
  Executable* const pair[] = {times.standard.get(), executable->get()};
  MENDEL_ASSIGN_OR_RETURN(const auto medians,
                          times.trial.StepMedians(pair, {.min_runs = 2, .seconds = max_seconds, .deadline = deadline_}));
  for (const auto& [node, same] : algorithms) {
    std::set<int32_t> nodes;
    for (const Executable* one : pair) {
      for (const int32_t with : NodesWith(one->steps(), node)) nodes.insert(with);
    }
    const double standard = SecondsOf(times.standard->steps(), medians[0], nodes);
    const double seconds = SecondsOf((*executable)->steps(), medians[1], nodes);
    if (!nodes.empty() && standard > 0) times.ratio[node][name] = seconds / standard;
  }
  return absl::OkStatus();
}

Algorithms Profiler::TakeKnown(const Graph& graph, Offers& offers) const {
  Algorithms chosen;
  for (auto it = offers.begin(); it != offers.end();) {
    const auto& [node, names] = *it;
    const auto known = by_signature_.find(Signature(graph, node));
    if (known == by_signature_.end()) {
      ++it;
      continue;
    }
    if (std::find(names.begin(), names.end(), known->second) != names.end()) chosen[node] = known->second;
    it = offers.erase(it);
  }
  return chosen;
}

void Profiler::NoteSignatures(const Graph& graph, const Offers& offers, const Algorithms& chosen) {
  std::map<std::string, std::map<std::string, int>> votes;
  for (const auto& [node, names] : offers) {
    const auto it = chosen.find(node);
    ++votes[Signature(graph, node)][it == chosen.end() ? "" : it->second];
  }
  for (const auto& [signature, names] : votes) {
    const auto most =
        std::max_element(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    by_signature_.emplace(signature, most->first);
  }
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
