#include "optimizer/search/alternatives.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "graph/text.h"
#include "mutator/rule.h"
#include "optimizer/search/matches.h"

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

TEST(Verify, ARuleThatLiesIsScreenedOutAndNamed) {
  const auto cache = *ProfileCache::Open(":memory:");
  for (int run = 0; run < 2; ++run) {  // the second from the store
    const auto alternative = Verify(Lie(), {}, *cache);
    ASSERT_TRUE(alternative.ok()) << alternative.status();
    EXPECT_EQ(alternative->verification, Verification::kScreenedOut);
    EXPECT_TRUE(alternative->faulty);
  }
}

/// The first mutant of a sample of batch_to_space that can be corrected in two ways.
Mutant CorrectableInTwoWays(ProfileCache& cache, Graph& graph, Alternative& alternative) {
  const Rule* rule = FindRule("batch_to_space");
  for (uint64_t seed = 1; seed < 200; ++seed) {
    Rng rng(seed);
    graph = *rule->sample(rng);
    for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
      for (const Match& match : rule->match(graph, node, DefaultPredictor())) {
        auto mutant = MakeMutant(graph, *rule, match, DefaultPredictor());
        if (!mutant.ok()) continue;
        auto verified = Verify(*mutant, {}, cache);
        if (!verified.ok() || verified->others.empty()) continue;
        alternative = *std::move(verified);
        return *std::move(mutant);
      }
    }
  }
  ADD_FAILURE() << "no sample is corrected in two ways";
  return {};
}

TEST(DescribeMutant, ReportsWhereOutputsWereWrongAndTheirShapes) {
  const auto cache = *ProfileCache::Open(":memory:");
  Graph graph;
  Alternative alternative;
  const Mutant mutant = CorrectableInTwoWays(*cache, graph, alternative);
  const plan::AppliedMutant applied = DescribeMutant(graph, mutant, alternative, 2, 1);
  ASSERT_EQ(applied.mended_size(), static_cast<int>(mutant.original.outputs().size()));
  for (int k = 0; k < applied.mended_size(); ++k) {
    const plan::MendedOutput& output = applied.mended(k);
    const Shape& shape =
        mutant.original.type(mutant.original.outputs()[static_cast<size_t>(k)].value).shape;
    EXPECT_EQ(Shape(output.shape().begin(), output.shape().end()), shape);
    EXPECT_EQ(output.elements(), NumElements(shape));
    int64_t wrong = 0;
    for (const plan::BoxProto& box : output.boxes()) {
      ASSERT_EQ(box.end_size(), static_cast<int>(shape.size()));
      int64_t volume = 1;
      for (int d = 0; d < box.end_size(); ++d) {
        EXPECT_LE(box.end(d), shape[static_cast<size_t>(d)]);
        volume *= box.end(d) - box.begin(d);
      }
      wrong += volume;
    }
    EXPECT_EQ(output.wrong_elements(), wrong);
  }
}

TEST(Verify, ThePreferredWayOfCorrectionIsRemembered) {
  const auto cache = *ProfileCache::Open(":memory:");
  Graph graph;
  Alternative alternative;
  const Mutant mutant = CorrectableInTwoWays(*cache, graph, alternative);
  ASSERT_FALSE(alternative.others.empty());
  const std::string other(CorrectionName(alternative.others[0].correction));
  EXPECT_NE(alternative.correction, other);
  ASSERT_TRUE(PreferCorrection(mutant, 0, alternative, *cache).ok());
  EXPECT_EQ(alternative.correction, other);
  EXPECT_TRUE(alternative.others.empty());
  const auto again = Verify(mutant, {}, *cache);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->correction, other);
  EXPECT_TRUE(again->others.empty());
  EXPECT_EQ(PrintGraph(again->graph), PrintGraph(alternative.graph));
}

}  // namespace
}  // namespace mendel
