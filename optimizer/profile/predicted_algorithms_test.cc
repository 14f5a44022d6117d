#include "optimizer/profile/predicted_algorithms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"

namespace mendel {
namespace {

using Costs = std::function<absl::StatusOr<double>(const Algorithms&)>;

std::string ChoiceOf(const Algorithms& algorithms, int32_t node) {
  const auto found = algorithms.find(node);
  return found == algorithms.end() ? "" : found->second;
}

Algorithms Chosen(const std::vector<AlgorithmOffers>& like, const Costs& seconds,
                  const Algorithms& known = {}) {
  bool cut = false;
  const auto chosen = CheapestAlgorithms(like, known, seconds, Deadline::Never(), cut);
  EXPECT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_FALSE(cut);
  return *chosen;
}

/// A chain of four nodes; "turned" halves a node's second, and a change between neighbors costs
/// 0.6.
absl::StatusOr<double> LayoutsOfAChain(const Algorithms& algorithms) {
  double seconds = 0;
  bool turned = false;
  for (int32_t node = 0; node < 4; ++node) {
    const bool now = ChoiceOf(algorithms, node) == "turned";
    seconds += (now ? 0.5 : 1) + (now != turned ? 0.6 : 0);
    turned = now;
  }
  return seconds + (turned ? 0.6 : 0);
}

TEST(PredictedAlgorithms, NeighborsChangeLayoutTogether) {
  std::vector<AlgorithmOffers> like;
  for (int32_t node = 0; node < 4; ++node) like.push_back({{node, {"turned"}}});
  const Algorithms chosen = Chosen(like, LayoutsOfAChain);
  EXPECT_EQ(chosen.size(), 4u);  // one turned node alone is slower by 0.7
}

TEST(PredictedAlgorithms, LikeNodesAgreeAndTheDefaultWinsTies) {
  const std::vector<AlgorithmOffers> like = {{{0, {"a", "b"}}, {1, {"a", "b"}}}, {{2, {"a"}}}};
  const Algorithms chosen =
      Chosen(like, [](const Algorithms& algorithms) -> absl::StatusOr<double> {
        return 10.0 - (ChoiceOf(algorithms, 0) == "b" ? 1 : 0);
      });
  EXPECT_EQ(chosen, (Algorithms{{0, "b"}, {1, "b"}}));
}

TEST(PredictedAlgorithms, ANameOfALaterLikeNodeIsTried) {
  const Costs seconds = [](const Algorithms& algorithms) -> absl::StatusOr<double> {
    return 10.0 - (ChoiceOf(algorithms, 0) == "a" ? 1 : 0) -
           (ChoiceOf(algorithms, 1) == "b" ? 2 : 0);
  };
  EXPECT_EQ(Chosen({{{0, {"a"}}, {1, {"a", "b"}}}}, seconds), (Algorithms{{1, "b"}}));
  // One by one, too: given to every node that has it, the name costs more than it gains.
  const Costs together = [](const Algorithms& algorithms) -> absl::StatusOr<double> {
    return 10.0 - (ChoiceOf(algorithms, 1) == "b" ? 2 : 0) +
           (ChoiceOf(algorithms, 2) == "b" ? 5 : 0);
  };
  EXPECT_EQ(Chosen({{{0, {"a"}}, {1, {"b"}}}, {{2, {"b"}}}}, together), (Algorithms{{1, "b"}}));
}

TEST(PredictedAlgorithms, KnownChoicesStayAndErrorsAreNoChoice) {
  const std::vector<AlgorithmOffers> like = {{{1, {"broken", "fast"}}}};
  const Costs seconds = [](const Algorithms& algorithms) -> absl::StatusOr<double> {
    if (ChoiceOf(algorithms, 1) == "broken") return InvalidInput("broken");
    return ChoiceOf(algorithms, 1) == "fast" ? 1 : 2;
  };
  EXPECT_EQ(Chosen(like, seconds, {{0, "slow"}}), (Algorithms{{0, "slow"}, {1, "fast"}}));
  bool cut = false;
  EXPECT_FALSE(CheapestAlgorithms(like, {{1, "broken"}}, seconds, Deadline::Never(), cut).ok());
}

TEST(PredictedAlgorithms, ADeadlineLeavesWhatIsKnown) {
  bool cut = false;
  const auto chosen = CheapestAlgorithms(
      {{{1, {"fast"}}}}, {{0, "known"}},
      [](const Algorithms& algorithms) -> absl::StatusOr<double> {
        return 2.0 - static_cast<double>(algorithms.size());
      },
      Deadline::After(0), cut);
  ASSERT_TRUE(chosen.ok());
  EXPECT_TRUE(cut);
  EXPECT_EQ(*chosen, (Algorithms{{0, "known"}}));
}

/// Random seconds of nodes and of pairs of neighbors: no other choice of one class is faster than
/// what is found.
TEST(PredictedAlgorithms, NoOneChangeIsFaster) {
  const std::vector<std::string> names = {"", "a", "b", "c"};
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    constexpr int32_t kNodes = 6;
    double alone[kNodes][4], between[kNodes][4][4];
    for (auto& node : alone) {
      for (double& value : node) value = rng.Unit();
    }
    for (auto& node : between) {
      for (auto& row : node) {
        for (double& value : row) value = rng.Unit();
      }
    }
    const auto place = [&](const Algorithms& algorithms, int32_t node) {
      return static_cast<size_t>(std::find(names.begin(), names.end(), ChoiceOf(algorithms, node)) -
                                 names.begin());
    };
    const Costs seconds = [&](const Algorithms& algorithms) -> absl::StatusOr<double> {
      double sum = 0;
      for (int32_t node = 0; node < kNodes; ++node) {
        sum += alone[node][place(algorithms, node)];
        if (node > 0) sum += between[node][place(algorithms, node - 1)][place(algorithms, node)];
      }
      return sum;
    };
    std::vector<AlgorithmOffers> like;
    for (int32_t node = 0; node < kNodes; ++node) like.push_back({{node, {"a", "b", "c"}}});
    const Algorithms chosen = Chosen(like, seconds);
    for (int32_t node = 0; node < kNodes; ++node) {
      for (const std::string& name : names) {
        Algorithms other = chosen;
        other.erase(node);
        if (!name.empty()) other[node] = name;
        EXPECT_GE(*seconds(other), *seconds(chosen) * (1 - 1e-6)) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace mendel
