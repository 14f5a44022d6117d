#include "optimizer/egraph/extract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/random_graph.h"
#include "graph/rewrite.h"

namespace mendel {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
const TensorType kType{DType::kF32, {4}};

/// E-graphs of made-up e-nodes: only operands, outputs and costs matter to an extraction.
struct Sample {
  EGraph egraph;
  std::vector<ClassId> roots;
  std::vector<double> cost;
};

ENodeId AddMade(EGraph& egraph, const std::vector<ClassId>& operands, size_t outputs,
                int64_t number) {
  Node node;
  node.op = &GetOp(operands.empty() ? "Input" : "Relu");
  node.attrs = {{"name", Cat("n", number)}};
  node.outputs.assign(outputs, kType);
  return *egraph.Add(node, operands);
}

/// Random e-nodes over what is there, then random merges: cycles, sharing, several outputs, zero
/// and infinite costs.
Sample RandomSample(Rng& rng) {
  Sample sample;
  std::vector<ClassId> values;
  const int64_t nodes = rng.Between(2, 13);
  for (int64_t k = 0; k < nodes; ++k) {
    std::vector<ClassId> operands;
    const int64_t count = values.empty() ? 0 : rng.Between(0, 3);
    for (int64_t i = 0; i < count; ++i) operands.push_back(values[rng.Below(values.size())]);
    const ENodeId id = AddMade(sample.egraph, operands, rng.Flip(0.15) ? 2 : 1, k);
    for (ClassId output : sample.egraph.node(id).outputs) values.push_back(output);
    sample.cost.push_back(rng.Flip(0.2)    ? 0
                          : rng.Flip(0.05) ? kInfinite
                                           : static_cast<double>(rng.Between(1, 20)));
  }
  const int64_t merges = rng.Between(0, 8);
  for (int64_t k = 0; k < merges; ++k) {
    const auto second = values[rng.Below(values.size())];
    EXPECT_TRUE(sample.egraph.Merge(values[rng.Below(values.size())], second).ok());
  }
  EXPECT_TRUE(sample.egraph.Rebuild().ok());
  sample.roots = {values.back()};
  if (rng.Flip(0.3)) sample.roots.push_back(values[rng.Below(values.size())]);
  return sample;
}

/// Can `nodes` compute the roots? By the definition: repeat until nothing new is computed.
bool Computes(const Sample& sample, const std::vector<ENodeId>& nodes) {
  std::set<ClassId> computed;
  for (bool grown = true; grown;) {
    grown = false;
    for (ENodeId id : nodes) {
      const ENode& node = sample.egraph.node(id);
      const bool ready = std::all_of(node.operands.begin(), node.operands.end(), [&](ClassId c) {
        return computed.count(sample.egraph.Find(c)) > 0;
      });
      if (!ready) continue;
      for (ClassId output : node.outputs)
        grown = computed.insert(sample.egraph.Find(output)).second || grown;
    }
  }
  return std::all_of(sample.roots.begin(), sample.roots.end(),
                     [&](ClassId root) { return computed.count(sample.egraph.Find(root)) > 0; });
}

/// The least cost over all subsets of e-nodes; infinite when none computes the roots.
double BruteForce(const Sample& sample) {
  std::vector<ENodeId> live;
  for (size_t i = 0; i < sample.egraph.node_space(); ++i) {
    if (sample.egraph.alive(static_cast<ENodeId>(i)) && sample.cost[i] < kInfinite)
      live.push_back(static_cast<ENodeId>(i));
  }
  double best = kInfinite;
  for (uint32_t subset = 0; subset < (1u << live.size()); ++subset) {
    double cost = 0;
    std::vector<ENodeId> nodes;
    for (size_t k = 0; k < live.size(); ++k) {
      if ((subset >> k & 1) == 0) continue;
      cost += sample.cost[static_cast<size_t>(live[k])];
      nodes.push_back(live[k]);
    }
    if (cost < best && Computes(sample, nodes)) best = cost;
  }
  return best;
}

/// The order can be computed step by step, contains nothing twice, and every class read is chosen
/// from an e-node before.
void ExpectSound(const Sample& sample, const Selection& selection) {
  std::set<ENodeId> done;
  for (ENodeId id : selection.order) {
    for (ClassId operand : sample.egraph.node(id).operands) {
      const auto choice = selection.choice.find(sample.egraph.Find(operand));
      ASSERT_NE(choice, selection.choice.end());
      ASSERT_TRUE(done.count(choice->second.node) > 0) << "read before it is computed";
    }
    ASSERT_TRUE(done.insert(id).second);
  }
  for (ClassId root : sample.roots)
    ASSERT_TRUE(done.count(selection.choice.at(sample.egraph.Find(root)).node) > 0);
}

TEST(ExtractProgram, AgreesWithBruteForce) {
  constexpr uint64_t kSeed = 41;
  int cyclic = 0, greedy_worse = 0, solved = 0, settled = 0;
  for (uint64_t run = 0; run < 3000; ++run) {
    SCOPED_TRACE(Cat("seed ", kSeed + run));
    Rng rng(kSeed + run);
    const Sample sample = RandomSample(rng);
    const double best = BruteForce(sample);
    const auto found = ExtractProgram(sample.egraph, sample.roots, sample.cost, {.seconds = 60});
    if (best == kInfinite) {
      ASSERT_TRUE(absl::IsFailedPrecondition(found.status())) << found.status();
      continue;
    }
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->cost, best);
    ASSERT_EQ(found->gap, 0);
    ASSERT_EQ(CostOfSelection(found->selection, sample.cost), found->cost);
    ASSERT_NO_FATAL_FAILURE(ExpectSound(sample, found->selection));
    cyclic += found->loop_cuts > 0 ? 1 : 0;
    ++(found->columns > 0 ? solved : settled);
    const auto greedy = ExtractProgram(sample.egraph, sample.roots, sample.cost, {.seconds = 0});
    ASSERT_TRUE(greedy.ok()) << greedy.status();
    ASSERT_EQ(greedy->method, "greedy");
    ASSERT_GE(greedy->cost, best);
    ASSERT_NO_FATAL_FAILURE(ExpectSound(sample, greedy->selection));
    greedy_worse += greedy->cost > best ? 1 : 0;
  }
  EXPECT_GT(cyclic, 0);
  EXPECT_GT(solved, 0);
  EXPECT_GT(settled, 0);
  EXPECT_GT(greedy_worse, 0);
}

TEST(ExtractProgram, SharedWorkCountsOnce) {
  // root = f(a, b); a and b cost 6 each alone, or 1 each from a common part of 7.
  Sample s;
  const ENodeId a = AddMade(s.egraph, {}, 1, 0), b = AddMade(s.egraph, {}, 1, 1),
                common = AddMade(s.egraph, {}, 1, 2);
  const ClassId part = s.egraph.node(common).outputs[0];
  const ENodeId a2 = AddMade(s.egraph, {part}, 1, 3), b2 = AddMade(s.egraph, {part}, 1, 4);
  const ClassId of_a = s.egraph.node(a).outputs[0], of_b = s.egraph.node(b).outputs[0];
  ASSERT_TRUE(s.egraph.Merge(of_a, s.egraph.node(a2).outputs[0]).ok());
  ASSERT_TRUE(s.egraph.Merge(of_b, s.egraph.node(b2).outputs[0]).ok());
  ASSERT_TRUE(s.egraph.Rebuild().ok());
  s.roots = {s.egraph.node(AddMade(s.egraph, {of_a, of_b}, 1, 5)).outputs[0]};
  s.cost = {6, 6, 7, 1, 1, 1};
  const auto exact = ExtractProgram(s.egraph, s.roots, s.cost);
  ASSERT_TRUE(exact.ok()) << exact.status();
  EXPECT_EQ(exact->cost, 10);
  EXPECT_EQ(exact->method, "ilp");
  const auto greedy = ExtractProgram(s.egraph, s.roots, s.cost, {.seconds = 0});
  EXPECT_EQ(greedy->cost, 13);
  EXPECT_EQ(greedy->lower_bound, 7);  // the sum, and the cheaper of a and b
}

/// A dense block as networks have them: every layer reads all before it. Each has an alternative of
/// three steps, and every third one's is cheaper by one.
Sample Dense(int layers, double& cheapest) {
  Sample s;
  const auto add = [&](const std::vector<ClassId>& operands, double cost) {
    s.cost.push_back(cost);
    return s.egraph.node(AddMade(s.egraph, operands, 1, static_cast<int64_t>(s.cost.size())))
        .outputs[0];
  };
  std::vector<ClassId> values = {add({}, 1)};
  cheapest = 1;
  for (int k = 0; k < layers; ++k) {
    const ClassId concat = add(values, 1);
    values.push_back(add({concat}, 10));
    const ClassId other = add({add({add({concat}, 1)}, 3)}, k % 3 == 0 ? 5 : 7);
    EXPECT_TRUE(s.egraph.Merge(values.back(), other).ok());
    cheapest += k % 3 == 0 ? 10 : 11;
  }
  EXPECT_TRUE(s.egraph.Rebuild().ok());
  s.roots = {values.back()};
  return s;
}

TEST(ExtractProgram, WhatSharesNothingNeedsNoIntegerProgram) {
  double cheapest = 0;
  const Sample s = Dense(200, cheapest);
  const auto found = ExtractProgram(s.egraph, s.roots, s.cost,
                                    {.seconds = 0});  // no time but for what is decided anyway
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->cost, cheapest);
  EXPECT_EQ(found->gap, 0);
  EXPECT_EQ(found->columns, 0);
}

TEST(ExtractProgram, SharedChoicesAmongThousandsOfClassesAreSolvedAlone) {
  // The dense block again, and fifty times a pair of its values computed from a common part, as in
  // SharedWorkCountsOnce.
  double cheapest = 0;
  Sample s = Dense(200, cheapest);
  const auto add = [&](const std::vector<ClassId>& operands, double cost) {
    s.cost.push_back(cost);
    return s.egraph.node(AddMade(s.egraph, operands, 1, static_cast<int64_t>(s.cost.size())))
        .outputs[0];
  };
  std::vector<ClassId> sums = s.roots;
  for (int k = 0; k < 50; ++k) {
    const ClassId a = add(sums, 6), b = add(sums, 6), common = add(sums, 7);
    ASSERT_TRUE(s.egraph.Merge(a, add({common}, 1)).ok());
    ASSERT_TRUE(s.egraph.Merge(b, add({common}, 1)).ok());
    sums.push_back(add({a, b}, 1));
  }
  ASSERT_TRUE(s.egraph.Rebuild().ok());
  s.roots = {sums.back()};
  const auto found = ExtractProgram(s.egraph, s.roots, s.cost, {.seconds = 600});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->cost, cheapest + 50 * 10);
  EXPECT_EQ(found->gap, 0);
  EXPECT_EQ(found->method, "ilp");
  EXPECT_EQ(found->columns, 50 * 5);  // a, b, each again, the common part
}

TEST(ExtractProgram, AChainIsSolvedBlockByBlock) {
  // The program of SharedWorkCountsOnce, again and again on its own result.
  const auto solved = [](int blocks) {
    Sample s;
    ClassId value = s.egraph.node(AddMade(s.egraph, {}, 1, 0)).outputs[0];
    s.cost = {0};
    for (int block = 0; block < blocks; ++block) {
      const auto add = [&](const std::vector<ClassId>& operands, double cost) {
        const ENodeId id = AddMade(s.egraph, operands, 1, static_cast<int64_t>(s.cost.size()));
        s.cost.push_back(cost);
        return s.egraph.node(id).outputs[0];
      };
      const ClassId a = add({value}, 6), b = add({value}, 6), common = add({value}, 7);
      EXPECT_TRUE(s.egraph.Merge(a, add({common}, 1)).ok());
      EXPECT_TRUE(s.egraph.Merge(b, add({common}, 1)).ok());
      value = add({a, b}, 1);
    }
    EXPECT_TRUE(s.egraph.Rebuild().ok());
    s.roots = {value};
    return *ExtractProgram(s.egraph, s.roots, s.cost, {.seconds = 600});
  };
  const Extraction one = solved(1), two = solved(2), many = solved(40);
  EXPECT_EQ(one.parts, 1);
  EXPECT_EQ(many.cost, 40 * one.cost);
  EXPECT_EQ(many.gap, 0);
  EXPECT_EQ(many.method, "ilp");
  EXPECT_EQ(many.parts, 40);
  EXPECT_EQ(
      many.rows,
      one.rows + 39 * (two.rows - one.rows));  // the first one reads an input, which needs no row
}

TEST(ExtractProgram, MemoryLimit) {
  // y = a + b directly (x, a, b alive: 48 bytes, cost 2), or in a chain of one value at a time (32
  // bytes, cost 5).
  Sample s;
  const ENodeId x = AddMade(s.egraph, {}, 1, 0);
  const ClassId of_x = s.egraph.node(x).outputs[0];
  const ClassId a = s.egraph.node(AddMade(s.egraph, {of_x}, 1, 1)).outputs[0];
  const ClassId b = s.egraph.node(AddMade(s.egraph, {of_x}, 1, 2)).outputs[0];
  const ClassId y = s.egraph.node(AddMade(s.egraph, {a, b}, 1, 3)).outputs[0];
  const ClassId chain = s.egraph.node(AddMade(s.egraph, {of_x}, 1, 4)).outputs[0];
  ASSERT_TRUE(s.egraph.Merge(y, chain).ok());
  ASSERT_TRUE(s.egraph.Rebuild().ok());
  s.roots = {y};
  s.cost = {0.5, 0.5, 0.5, 0.5, 5};
  const auto free = ExtractProgram(s.egraph, s.roots, s.cost);
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_EQ(free->cost, 2);
  EXPECT_EQ(free->peak_bytes, 48);
  const auto limited = ExtractProgram(s.egraph, s.roots, s.cost, {.max_peak_bytes = 40});
  ASSERT_TRUE(limited.ok()) << limited.status();
  EXPECT_EQ(limited->cost, 5.5);
  EXPECT_EQ(limited->peak_bytes, 32);
  EXPECT_EQ(limited->gap, 0);
  EXPECT_TRUE(absl::IsResourceExhausted(
      ExtractProgram(s.egraph, s.roots, s.cost, {.max_peak_bytes = 20}).status()));
}

TEST(ToGraph, GivesTheGraphBack) {
  constexpr uint64_t kSeed = 5;
  for (uint64_t run = 0; run < 100; ++run) {
    SCOPED_TRACE(Cat("seed ", kSeed + run));
    Rng rng(kSeed + run);
    const Graph graph = *Deduplicate(RandomGraph(rng, 8));
    EGraph egraph;
    const auto where = *egraph.AddGraph(graph);
    std::vector<ClassId> roots;
    for (const GraphOutput& output : graph.outputs()) {
      roots.push_back(
          where[static_cast<size_t>(output.value.node)][static_cast<size_t>(output.value.output)]);
    }
    const auto found = ExtractProgram(egraph, roots, std::vector<double>(egraph.node_space(), 1));
    ASSERT_TRUE(found.ok()) << found.status();
    const auto back = ToGraph(egraph, found->selection, roots, graph);
    ASSERT_TRUE(back.ok()) << back.status();
    ASSERT_EQ(back->graph.nodes().size(), graph.nodes().size());
    ASSERT_TRUE(CheckGraph(back->graph).ok());
    const std::vector<HostValue> inputs = RandomInputs(rng, graph);
    const auto want = *Evaluate(graph, inputs), have = *Evaluate(back->graph, inputs);
    ASSERT_EQ(want.size(), have.size());
    for (size_t k = 0; k < want.size(); ++k) {
      ASSERT_EQ(want[k].type, have[k].type);
      ASSERT_EQ(want[k].scalars, have[k].scalars);
      ASSERT_EQ(want[k].integers, have[k].integers);
    }
  }
}

}  // namespace
}  // namespace mendel
