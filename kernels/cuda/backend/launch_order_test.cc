// Dependencies of made-up work: that conflicts stay in order, and that nothing else is kept in one.

#include "kernels/cuda/backend/launch_order.h"

#include <stdlib.h>

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/experiments.h"
#include "kernels/cuda/backend/launch_node.h"

namespace mendel::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

DeviceBuffer At(int64_t offset, int64_t bytes = 256, size_t allocation = 1) {
  return {allocation, offset, bytes};
}

TEST(LaunchOrder, ReadersWaitForWritersAndWritersForBoth) {
  const std::vector<MemoryUse> work = {
      {{}, {At(0)}},                 // 0 writes a
      {{At(0)}, {At(256)}},          // 1 reads a
      {{At(0)}, {At(512)}},          // 2 reads a, too
      {{At(256), At(512)}, {At(0)}}  // 3 reads what these wrote, over a
  };
  EXPECT_THAT(DependenciesOf(work),
              ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(0), UnorderedElementsAre(1, 2)));
  EXPECT_FALSE(IsChain(DependenciesOf(work)));
}

TEST(LaunchOrder, BytesOfAnAllocationMatter) {
  EXPECT_TRUE(Conflict({{}, {At(0, 300)}}, {{At(299, 1)}, {}}));
  EXPECT_FALSE(Conflict({{}, {At(0, 300)}}, {{At(300, 1)}, {}}));
  EXPECT_FALSE(Conflict({{}, {At(0, 300, 1)}}, {{At(0, 300, 2)}, {}}));
  EXPECT_FALSE(Conflict({{At(0)}, {}}, {{At(0)}, {}})) << "both only read";
  EXPECT_FALSE(Conflict({{}, {At(0, 0)}}, {{At(0)}, {}})) << "no bytes";
}

TEST(LaunchOrder, AChainIsOne) {
  const std::vector<MemoryUse> chain = {{{}, {At(0)}}, {{At(0)}, {At(256)}}, {{At(256)}, {At(0)}}};
  EXPECT_TRUE(IsChain(DependenciesOf(chain)));
  EXPECT_TRUE(IsChain(DependenciesOf({})));
}

TEST(LaunchOrder, FramesWaitForAllAndAreWaitedFor) {
  EXPECT_THAT(Framed({{}, {0}, {}}), ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(1),
                                                 ElementsAre(0), ElementsAre(2, 3)));
  EXPECT_THAT(Framed({}), ElementsAre(IsEmpty(), ElementsAre(0)));
}

/// before[k][j]: k waits for j, by way of others too.
std::vector<std::vector<bool>> Closure(const Dependencies& dependencies) {
  std::vector<std::vector<bool>> before(dependencies.size(),
                                        std::vector<bool>(dependencies.size(), false));
  for (size_t k = 0; k < dependencies.size(); ++k) {
    for (const size_t j : dependencies[k]) {
      before[k][j] = true;
      for (size_t i = 0; i < j; ++i) before[k][i] = before[k][i] || before[j][i];
    }
  }
  return before;
}

TEST(LaunchOrder, RandomWorkKeepsItsConflictsInOrderAndNothingElse) {
  size_t edges = 0, unordered = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    std::vector<MemoryUse> work(static_cast<size_t>(rng.Between(1, 24)));
    const auto draw = [&] { return At(rng.Between(0, 40) * 64, rng.Between(0, 4) * 64); };
    for (MemoryUse& use : work) {
      for (int64_t k = rng.Between(0, 3); k > 0; --k) use.reads.push_back(draw());
      for (int64_t k = rng.Between(1, 2); k > 0; --k) use.writes.push_back(draw());
    }
    Dependencies dependencies = DependenciesOf(work);
    const auto before = Closure(dependencies);
    for (size_t k = 0; k < work.size(); ++k) {
      for (size_t j = 0; j < k; ++j) {
        unordered += before[k][j] ? 0 : 1;
        EXPECT_TRUE(before[k][j] || !Conflict(work[j], work[k]))
            << "seed " << seed << ": " << j << " and " << k;
      }
    }
    for (size_t k = 0; k < work.size(); ++k) {
      const std::vector<size_t> own = dependencies[k];
      for (size_t at = 0; at < own.size(); ++at, ++edges) {
        EXPECT_TRUE(Conflict(work[own[at]], work[k])) << "seed " << seed;
        dependencies[k].erase(dependencies[k].begin() + static_cast<std::ptrdiff_t>(at));
        EXPECT_FALSE(Closure(dependencies)[k][own[at]])
            << "seed " << seed << ": " << own[at] << " and " << k << " by others";
        dependencies[k] = own;
      }
    }
  }
  EXPECT_GT(edges, 200u);
  EXPECT_GT(unordered, 200u);
}

TEST(LaunchOrder, LevelsCountWhatMustComeBefore) {
  const ValueId a{1, 0}, b{2, 0}, c{3, 0}, d{4, 0};
  // a and b from nothing, c of a, then b again over itself and after its reader.
  const std::vector<ValueUse> nodes = {{{}, {a}}, {{}, {b}}, {{a}, {c}}, {{b}, {d}}, {{c}, {b}}};
  EXPECT_THAT(LevelsOf(nodes), ElementsAre(0, 0, 1, 1, 2));
  EXPECT_TRUE(Conflict(nodes[3], nodes[4]));
  EXPECT_FALSE(Conflict(nodes[2], nodes[3]));
}

TEST(LaunchOrder, DepthFirstEndsABranchBeforeTheNext) {
  const auto value = [](int32_t node) { return ValueId{node, 0}; };
  // Two branches, level by level: 0 -> 2 -> 4 -> 6 and 1 -> 3 -> 5, which 6 reads, too.
  const std::vector<ValueUse> nodes = {{{}, {value(0)}},
                                       {{}, {value(1)}},
                                       {{value(0)}, {value(2)}},
                                       {{value(1)}, {value(3)}},
                                       {{value(2)}, {value(4)}},
                                       {{value(3)}, {value(5)}},
                                       {{value(4), value(5)}, {value(6)}}};
  EXPECT_THAT(DepthFirst(nodes), ElementsAre(0, 2, 4, 1, 3, 5, 6));
  EXPECT_THAT(DepthFirst({}), IsEmpty());
}

TEST(LaunchOrder, DepthFirstKeepsConflictsInOrder) {
  size_t moved = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    std::vector<ValueUse> nodes(static_cast<size_t>(rng.Between(1, 24)));
    for (ValueUse& use : nodes) {
      const auto draw = [&] { return ValueId{static_cast<int32_t>(rng.Between(0, 12)), 0}; };
      for (int64_t k = rng.Between(0, 2); k > 0; --k) use.reads.insert(draw());
      use.writes.insert(draw());
    }
    const std::vector<size_t> order = DepthFirst(nodes);
    ASSERT_EQ(order.size(), nodes.size()) << "seed " << seed;
    for (size_t a = 0; a < order.size(); ++a) {
      moved += order[a] == a ? 0 : 1;
      for (size_t b = a + 1; b < order.size(); ++b) {
        EXPECT_TRUE(order[a] < order[b] ||
                    (order[a] != order[b] && !Conflict(nodes[order[a]], nodes[order[b]])))
            << "seed " << seed;
      }
    }
  }
  EXPECT_GT(moved, 50u);
}

TEST(LaunchOrder, PiecesOfOneDepthAreSideBySide) {
  EXPECT_EQ(MostSideBySide({}), 0u);
  EXPECT_EQ(MostSideBySide({{}, {0}, {1}}), 1u);
  EXPECT_EQ(MostSideBySide({{}, {}, {0}, {1}, {0}, {2, 3, 4}}), 3u);
}

TEST(Experiments, TheSettingHasThreeValues) {
  const char* const variable = "MENDEL_CUDA_EXPERIMENTS";
  ::unsetenv(variable);
  EXPECT_EQ(*ExperimentsHere(), Experiments::kOff);
  EXPECT_EQ(OrdersOf(Experiments::kOff).order, LaunchOrder::kChain);
  ::setenv(variable, "measured", 1);
  EXPECT_EQ(*ExperimentsHere(), Experiments::kMeasured);
  EXPECT_EQ(OrdersOf(Experiments::kMeasured).order, LaunchOrder::kFaster);
  EXPECT_EQ(OrdersOf(Experiments::kMeasured).apart_up_to, 1.5);
  ::setenv(variable, "on", 1);
  EXPECT_EQ(*ExperimentsHere(), Experiments::kOn);
  EXPECT_EQ(OrdersOf(Experiments::kOn).order, LaunchOrder::kBranches);
  EXPECT_GT(OrdersOf(Experiments::kOn).apart_up_to, 1e300);
  for (const char* bad : {"", "1", "OFF"}) {
    ::setenv(variable, bad, 1);
    EXPECT_EQ(ExperimentsHere().status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(ExperimentsHere().status().message()),
                HasSubstr(Cat("not '", bad, "'")));
  }
  ::unsetenv(variable);
}

}  // namespace
}  // namespace mendel::cuda
