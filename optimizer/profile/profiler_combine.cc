// Combines times of single algorithms into one whole program.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "optimizer/profile/profiler.h"
#include "optimizer/profile/profiler_times.h"
#include "optimizer/profile/region_choices.h"

namespace mendel {
namespace {

constexpr double kNoise = 0.97;  // an algorithm must win by more than measurements repeat
// An algorithm that loses less than this alone may win among others of its kind.
constexpr double kTie = 1.1;
constexpr double kAffordable = 4;  // a program is begun when so many first runs fit into the time
// Rounds that put each node's best together; their times change what is best.
constexpr int kRounds = 8;

}  // namespace

double Profiler::AlgorithmTimes::Ratios::Estimate() const {
  std::vector<double> sorted = all_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() < kConfirmed ? 0 : (sorted.size() - 1) / 2];
}

const std::pair<const Algorithms, Profiler::AlgorithmTimes::Ratios>&
Profiler::AlgorithmTimes::Fastest() const {
  const auto standard = of_programs.find(known);
  const auto least = std::min_element(
      of_programs.begin(), of_programs.end(),
      [](const auto& a, const auto& b) { return a.second.Estimate() < b.second.Estimate(); });
  return least->second.Estimate() < standard->second.Estimate() ? *least : *standard;
}

size_t Profiler::AlgorithmTimes::MeasurementsOf(const Algorithms& all) const {
  const auto it = of_programs.find(all);
  if (it == of_programs.end()) return 0;
  return std::isinf(it->second.Estimate()) ? kConfirmed
                                           : it->second.size();  // what is wrong is not tried again
}

Profiler::BestOfNodes Profiler::BestSoFar(const Graph& graph, const Offers& offers,
                                          const AlgorithmTimes& times) const {
  BestOfNodes best;
  for (const auto& [node, names] : offers) {
    const auto timed = times.of_nodes.find(SignatureOf(graph, node));
    if (timed == times.of_nodes.end()) continue;
    double least = kNoise;
    std::map<std::string, double> least_of;
    for (const auto& [name, ratios] : timed->second) {
      if (std::find(names.begin(), names.end(), name) == names.end())
        continue;  // what like nodes have depends on neighbors
      const double ratio = ratios.Estimate();
      if (ratio < least) least = ratio, best.each[node] = name;
      const std::string kind = backend_.AlgorithmKind(name);
      const auto [least_of_kind, is_first] = least_of.try_emplace(kind, ratio);
      if (!is_first && ratio >= least_of_kind->second) continue;
      least_of_kind->second = ratio;
      best.of_kind[kind][node] = name;
    }
    for (const auto& [kind, ratio] : least_of) {
      if (ratio < kTie) best.tied[kind][node] = best.of_kind[kind][node];
    }
  }
  return best;
}

absl::StatusOr<Algorithms> Profiler::CombineAlgorithms(const Graph& graph, const Offers& offers,
                                                       double max_seconds, AlgorithmTimes& times) {
  const double share = max_seconds / 3;
  // The times in a program of all best ones are added to what is known of each: one that was only
  // lucky before, or is slow beside these neighbors, makes room for the next.
  for (bool news = true, first = true; news && !times.cut && times.combinations < kRounds;
       first = false) {
    news = false;
    const BestOfNodes best = BestSoFar(graph, offers, times);
    const auto measure = [&](Algorithms choice, size_t enough) -> absl::Status {
      choice.insert(times.known.begin(), times.known.end());
      if (choice == times.known || times.MeasurementsOf(choice) >= enough) return absl::OkStatus();
      news = true;
      ++times.combinations;
      return RatioOf(graph, choice, share, times).status();
    };
    for (const auto& [kind, algorithms] : best.of_kind) {
      // The best of the default's kind alone is no whole: `each` has what is good of it, and
      // the others as well.
      if (kind.empty() || !first) continue;
      MENDEL_RETURN_IF_ERROR(measure(algorithms, 1));
      MENDEL_RETURN_IF_ERROR(
          measure(best.tied.count(kind) > 0 ? best.tied.at(kind) : Algorithms{}, 1));
    }
    MENDEL_RETURN_IF_ERROR(measure(best.each, AlgorithmTimes::kConfirmed));
  }
  MENDEL_RETURN_IF_ERROR(
      ChooseByRegion(graph, offers, BestSoFar(graph, offers, times).of_kind, share, times));
  // A program that was only put together may lose by layouts; slower parts are no reason to take
  // it. The luckiest of many programs need not be the fastest.
  while (times.Fastest().first != times.known &&
         times.Fastest().second.size() < AlgorithmTimes::kConfirmed && !times.cut) {
    const Algorithms fastest = times.Fastest().first;
    MENDEL_RETURN_IF_ERROR(RatioOf(graph, fastest, share, times).status());
  }
  return times.Fastest().first;
}

absl::StatusOr<std::optional<double>> Profiler::RatioOf(const Graph& graph,
                                                        const Algorithms& choice,
                                                        double max_seconds, AlgorithmTimes& times) {
  // A program starts only if the time left suffices.
  if (deadline_.SecondsLeft() < kAffordable * times.first_seconds) {
    times.cut = true;
    return std::nullopt;
  }
  const double seconds = std::min(max_seconds, deadline_.SecondsLeft() / kAffordable);
  // Programs are compared with the default one after the other: packed weights of three would be
  // most of a search's memory.
  std::string difference;
  MENDEL_ASSIGN_OR_RETURN(const std::optional<Steps> steps,
                          TimeSteps(graph, choice, seconds, times, difference));
  if (steps.has_value()) {
    Credit(graph, choice, *steps, times);
    return times.of_programs.at(choice).Estimate();
  }
  Warn("a choice of algorithms", difference);
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  times.of_programs[choice].Add(kWrong);
  return kWrong;
}

std::vector<std::vector<int32_t>> Profiler::RegionsOf(const Graph& graph,
                                                      const Offers& offers) const {
  std::set<int32_t> nodes;
  for (const auto& offer : offers) nodes.insert(offer.first);
  return backend_.KindRegions(graph, nodes);
}

absl::Status Profiler::ChooseByRegion(const Graph& graph, const Offers& offers,
                                      const std::map<std::string, Algorithms>& of_kind,
                                      double max_seconds, AlgorithmTimes& times) {
  std::vector<RegionChoices> regions;
  for (const std::vector<int32_t>& nodes : RegionsOf(graph, offers)) {
    RegionChoices& region = regions.emplace_back();
    region.nodes = nodes;
    region.choices.emplace_back();  // the default
    for (const auto& [kind, algorithms] : of_kind) {
      Algorithms choice;
      for (const int32_t node : nodes) {
        if (const auto it = algorithms.find(node); it != algorithms.end()) choice.insert(*it);
      }
      if (!choice.empty()) region.choices.push_back(std::move(choice));
    }
  }
  const auto ratio = [&](const Algorithms& algorithms) -> absl::StatusOr<std::optional<double>> {
    const auto ran = times.of_programs.find(algorithms);
    return ran != times.of_programs.end() ? std::optional(ran->second.Estimate())
                                          : RatioOf(graph, algorithms, max_seconds, times);
  };
  const auto [best, ratios] = times.Fastest();
  return CheapestByRegion(regions, best, ratios.Estimate(), ratio).status();
}

}  // namespace mendel
