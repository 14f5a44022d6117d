#include "optimizer/alternatives.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "graph/text.h"
#include "mutator/rule.h"
#include "optimizer/contest.h"

namespace mendel {
namespace {

Graph Parse(const std::string& body) { return *ParseGraph("graph \"g\" {" + body + "}"); }

/// Claims to be exact and doubles its operand.
Mutant Lie() {
  static const Rule* const kLiar = [] {
    auto* rule = new Rule();
    rule->name = "liar";
    return rule;
  }();
  Mutant mutant;
  mutant.rule = kLiar;
  mutant.original = Parse(R"(
  %0 = Input() {name = "in0", shape = [4]}
  %1 = Relu(%0)
  return "out0" = %1
)");
  mutant.mutant = Parse(R"(
  %0 = Input() {name = "in0", shape = [4]}
  %1 = Relu(%0)
  %2 = Add(%1, %1)
  return "out0" = %2
)");
  return mutant;
}

TEST(Judge, ARuleThatLiesIsScreenedOutAndNamed) {
  const auto cache = *ProfileCache::Open(":memory:");
  for (int run = 0; run < 2; ++run) {  // the second from the store
    const auto alternative = Judge(Lie(), {}, *cache);
    ASSERT_TRUE(alternative.ok()) << alternative.status();
    EXPECT_EQ(alternative->judgement, Judgement::kScreenedOut);
    EXPECT_TRUE(alternative->faulty);
  }
}

/// The first mutant of a sample of batch_to_space that can be mended in two ways.
Mutant MendableInTwoWays(ProfileCache& cache, Alternative& alternative) {
  const Rule* rule = FindRule("batch_to_space");
  for (uint64_t seed = 1; seed < 200; ++seed) {
    Rng rng(seed);
    const Graph graph = *rule->sample(rng);
    for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
      for (const Match& match : rule->match(graph, node)) {
        auto mutant = MakeMutant(graph, *rule, match);
        if (!mutant.ok()) continue;
        auto judged = Judge(*mutant, {}, cache);
        if (!judged.ok() || judged->others.empty()) continue;
        alternative = *std::move(judged);
        return *std::move(mutant);
      }
    }
  }
  ADD_FAILURE() << "no sample is mended in two ways";
  return {};
}

TEST(Judge, ThePreferredWayOfMendingIsRemembered) {
  const auto cache = *ProfileCache::Open(":memory:");
  Alternative alternative;
  const Mutant mutant = MendableInTwoWays(*cache, alternative);
  ASSERT_FALSE(alternative.others.empty());
  const std::string other(MendingName(alternative.others[0].mending));
  EXPECT_NE(alternative.mending, other);
  ASSERT_TRUE(PreferMending(mutant, 0, alternative, *cache).ok());
  EXPECT_EQ(alternative.mending, other);
  EXPECT_TRUE(alternative.others.empty());
  const auto again = Judge(mutant, {}, *cache);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->mending, other);
  EXPECT_TRUE(again->others.empty());
  EXPECT_EQ(PrintGraph(again->graph), PrintGraph(alternative.graph));
}

}  // namespace
}  // namespace mendel
