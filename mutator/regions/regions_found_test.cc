// Region analysis finds next to everything that evaluation shows: positions along an axis that no
// output needs, and positions that equal others.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/random_graph.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "mutator/regions/plan.h"
#include "mutator/regions/random_program.h"

namespace mendel {
namespace {

constexpr int kDraws = 3;              // of values behind one finding
constexpr double kNeededFound = 0.95;  // least share of what evaluation shows
constexpr double kRepeatedFound = 0.95;
constexpr int64_t kEvaluations = 400;  // of a program; larger ones are passed over

/// The findings of evaluation, and those of them that the analysis makes, too.
struct Tally {
  int64_t shown = 0, found = 0;
  double Share() const {
    return static_cast<double>(found) / static_cast<double>(std::max<int64_t>(shown, 1));
  }
};

bool Same(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-12 * (std::abs(a) + std::abs(b)) ||
         (std::isnan(a) && std::isnan(b));
}

/// The positions along each axis of input `k` at which other values change some output.
std::vector<std::vector<bool>> Shown(const Graph& graph, size_t k, Rng& rng) {
  const Shape& shape = graph.node(graph.inputs()[k]).outputs[0].shape;
  std::vector<std::vector<bool>> matters;
  for (int64_t extent : shape) matters.emplace_back(static_cast<size_t>(extent), false);
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::vector<HostValue> inputs = RandomInputs(rng, graph);
    const auto a = Evaluate(graph, inputs);
    MENDEL_CHECK(a.ok());
    for (size_t d = 0; d < shape.size(); ++d) {
      for (int64_t p = 0; p < shape[d]; ++p) {
        if (matters[d][static_cast<size_t>(p)]) continue;
        std::vector<HostValue> others = inputs;
        std::vector<int64_t> index(shape.size(), 0);
        for (int64_t i = 0; i < NumElements(shape); ++i, NextIndex(shape, index)) {
          if (index[d] == p)
            others[k].scalars[static_cast<size_t>(i)] = std::round(4 * rng.Normal());
        }
        const auto b = Evaluate(graph, others);
        MENDEL_CHECK(b.ok());
        for (size_t o = 0; o < a->size(); ++o) {
          for (int64_t i = 0; i < NumElements((*a)[o].type); ++i) {
            if (!Same((*a)[o].At(i), (*b)[o].At(i))) matters[d][static_cast<size_t>(p)] = true;
          }
        }
      }
    }
  }
  return matters;
}

void CountNeeded(const Graph& graph, Rng& rng, Tally& tally) {
  const RegionPlan plan = PlanRegions(graph, Known::kNothing);
  for (size_t k = 0; k < graph.inputs().size(); ++k) {
    const ValuePlan& value = plan.values[static_cast<size_t>(graph.inputs()[k])][0];
    const std::vector<std::vector<bool>> matters = Shown(graph, k, rng);
    for (size_t d = 0; d < matters.size(); ++d) {
      std::vector<int64_t> list;
      if (value.is_needed) list = value.needed[d].ToList();
      for (size_t p = 0; p < matters[d].size(); ++p) {
        const bool needed =
            std::find(list.begin(), list.end(), static_cast<int64_t>(p)) != list.end();
        if (matters[d][p]) continue;
        ++tally.shown;
        tally.found += needed ? 0 : 1;
      }
    }
  }
}

int64_t EvaluationsOf(const Graph& graph) {
  int64_t count = 0;
  for (int32_t input : graph.inputs()) {
    for (int64_t extent : graph.node(input).outputs[0].shape) count += extent;
  }
  return count * kDraws;
}

TEST(RegionsFound, NearlyAllThatNoOutputNeeds) {
  Tally all;
  for (uint64_t seed = 1; seed <= RegionPrograms(); ++seed) {
    Rng rng(seed);
    const Graph graph = RandomRegionsProgram(rng);
    if (EvaluationsOf(graph) > kEvaluations) continue;
    Tally tally;
    CountNeeded(graph, rng, tally);
    if (tally.found < tally.shown && std::getenv("MENDEL_REGION_MISSES") != nullptr) {
      std::printf("seed %llu: %lld of %lld positions\n%s\n", static_cast<unsigned long long>(seed),
                  static_cast<long long>(tally.found), static_cast<long long>(tally.shown),
                  PrintGraph(graph).c_str());
    }
    all.shown += tally.shown;
    all.found += tally.found;
  }
  std::printf("[ %lld of %lld positions of inputs that do not matter ]\n",
              static_cast<long long>(all.found), static_cast<long long>(all.shown));
  EXPECT_GT(all.shown, 100);
  EXPECT_GE(all.Share(), kNeededFound);
}

/// Values of all nodes, one list a draw of the inputs: [draw][node].
std::vector<std::vector<HostValue>> ValuesOf(const Graph& graph, Rng& rng) {
  std::vector<std::vector<HostValue>> draws;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<HostValue>& values = draws.emplace_back();
    const auto outputs = EvaluateWith(
        graph, RandomInputs(rng, graph),
        [&](const OpDefinition& op, const NodeView& node, std::span<const HostValue* const> in) {
          std::vector<HostValue> found = EvaluateNode(op, node, in);
          values.push_back(found[0]);
          return found;
        });
    MENDEL_CHECK(outputs.ok());
  }
  return draws;
}

/// The first position along axis `d` at which every draw of node `n` is the same as at `p`.
int64_t FirstShown(const std::vector<std::vector<HostValue>>& draws, size_t n, size_t d,
                   int64_t p) {
  const Shape& shape = draws[0][n].type.shape;
  for (int64_t q = 0; q < p; ++q) {
    bool same = true;
    std::vector<int64_t> index(shape.size(), 0);
    for (int64_t i = 0; same && i < NumElements(shape); ++i, NextIndex(shape, index)) {
      if (index[d] != p) continue;
      std::vector<int64_t> other = index;
      other[d] = q;
      for (const std::vector<HostValue>& draw : draws)
        same = same && Same(draw[n].At(i), draw[n].At(FlatIndex(shape, other)));
    }
    if (same) return q;
  }
  return p;
}

TEST(RegionsFound, NearlyAllThatRepeats) {
  Tally all;
  for (uint64_t seed = 1; seed <= RegionPrograms(); ++seed) {
    Rng rng(seed);
    const Graph graph = RandomRegionsProgram(rng);
    const auto classes = RepeatedElements(graph);
    const auto draws = ValuesOf(graph, rng);
    size_t next = 0;
    Tally tally;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const Node& node = graph.nodes()[i];
      if (IsInput(node) || IsConstant(node)) continue;
      const size_t n = next++;
      const Shape& shape = node.outputs[0].shape;
      for (size_t d = 0; d < shape.size(); ++d) {
        for (int64_t p = 1; p < shape[d]; ++p) {
          if (FirstShown(draws, n, d, p) == p) continue;
          ++tally.shown;
          tally.found += FirstOf(classes[i][0][d], p) == p ? 0 : 1;
        }
      }
    }
    if (tally.found < tally.shown && std::getenv("MENDEL_REGION_MISSES") != nullptr) {
      std::printf("seed %llu: %lld of %lld repeated\n%s\n", static_cast<unsigned long long>(seed),
                  static_cast<long long>(tally.found), static_cast<long long>(tally.shown),
                  PrintGraph(graph).c_str());
    }
    all.shown += tally.shown;
    all.found += tally.found;
  }
  std::printf("[ %lld of %lld repeated positions ]\n", static_cast<long long>(all.found),
              static_cast<long long>(all.shown));
  EXPECT_GT(all.shown, 100);
  EXPECT_GE(all.Share(), kRepeatedFound);
}

}  // namespace
}  // namespace mendel
