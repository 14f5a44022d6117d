#include "client/size_looks.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/random.h"
#include "base/status.h"
#include "graph/rewrite.h"
#include "verifier/constants.h"
#include "verifier/witness/first_look.h"

namespace mendel {
namespace {

constexpr double kMostFlops = 1e9;
constexpr double kMostElements = 0x1p24;
/// For the enclosures of a witness.
constexpr double kSeconds = 20;

/// Sizes from 4 to here are looked at one by one: the proven ones leave out most of them.
constexpr int64_t kLargestSmall = 16;
/// Sizes of all other dimensions.
constexpr std::array<int64_t, 2> kOthers = {1, 3};
constexpr size_t kMostTogether = 128;

Sizes AllOf(const TurningSets& turning, int64_t size) {
  Sizes sizes;
  for (const auto& [name, set] : turning) sizes[name] = size;
  return sizes;
}

/// Turning sizes of all dimensions beside each other.
void AddTogether(const TurningSets& turning, uint64_t seed, std::vector<Sizes>& all) {
  double combinations = 1;
  TurningSets sets = turning;
  for (auto& [name, set] : sets) {
    set.insert(kOthers.begin(), kOthers.end());
    combinations *= static_cast<double>(set.size());
  }
  Rng rng(seed);
  const auto at = [](const std::set<int64_t>& set, size_t k) {
    return *std::next(set.begin(), static_cast<std::ptrdiff_t>(k));
  };
  const bool some = combinations > static_cast<double>(kMostTogether);
  const size_t count = some ? kMostTogether : static_cast<size_t>(combinations);
  for (size_t k = 0; k < count; ++k) {
    size_t rest = k;
    Sizes& sizes = all.emplace_back();
    for (const auto& [name, set] : sets) {
      const size_t place = some ? rng.Below(set.size()) : rest % set.size();
      sizes[name] = at(set, place);
      rest /= set.size();
    }
  }
}

double ElementsOf(const Graph& graph) {
  double elements = 0;
  for (const Node& node : graph.nodes()) {
    for (const TensorType& type : node.outputs) elements += static_cast<double>(NumElements(type));
  }
  return elements;
}

}  // namespace

std::vector<Sizes> SizesToLookAt(const TurningSets& turning, uint64_t seed) {
  std::vector<Sizes> all;
  for (const auto& [name, set] : turning) {
    for (int64_t size = 4; size <= kLargestSmall; ++size) {
      for (const int64_t other : kOthers) {
        Sizes& sizes = all.emplace_back(AllOf(turning, other));
        sizes[name] = size;
      }
    }
  }
  if (turning.size() < 2) return all;
  std::set<int64_t> alike;
  for (int64_t size = 4; size <= kLargestSmall; ++size) alike.insert(size);
  for (const auto& [name, set] : turning) alike.insert(set.begin(), set.end());
  for (const int64_t size : alike) all.push_back(AllOf(turning, size));
  AddTogether(turning, seed, all);
  return all;
}

bool IsAtLeast(const Sizes& a, const Sizes& b) {
  return std::all_of(b.begin(), b.end(), [&](const auto& size) {
    const auto found = a.find(size.first);
    return found != a.end() && found->second >= size.second;
  });
}

bool IsCheapToEvaluate(const Pair& pair) {
  return TotalFlops(pair.a) + TotalFlops(pair.b) <= kMostFlops &&
         ElementsOf(pair.a) + ElementsOf(pair.b) <= kMostElements;
}

absl::StatusOr<bool> DifferAtOnce(const Pair& pair, bool folded, WeightMode weights, uint64_t seed,
                                  const Deadline& deadline) {
  Graph b = pair.b;
  if (weights == WeightMode::kSymbolic) {
    MENDEL_ASSIGN_OR_RETURN(b, WithWeightsOf(pair.a, pair.b));
  }
  MENDEL_ASSIGN_OR_RETURN(const FirstLook look, LookForDifference(pair.a, b, seed));
  if (folded && !look.far_apart) return false;
  WitnessOptions options;
  options.seed = seed;
  options.deadline = deadline.Share(0.5).Within(kSeconds);
  MENDEL_ASSIGN_OR_RETURN(const std::optional<Witness> witness,
                          WitnessOfLook(pair.a, b, look, options));
  return witness.has_value();
}

}  // namespace mendel
