#include "optimizer/egraph/simplify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace mendel {
namespace {

ChoiceProblem Problem(size_t classes, const std::vector<ChoiceProblem::ChoiceNode>& nodes,
                      const std::vector<int>& roots) {
  ChoiceProblem problem{nodes, {}, {}, {}, roots, {}};
  problem.members.resize(classes);
  problem.readers.resize(classes);
  for (size_t c = 0; c < classes; ++c) problem.classes.push_back(static_cast<ClassId>(c));
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (int c : nodes[n].outputs)
      problem.members[static_cast<size_t>(c)].push_back(static_cast<int>(n));
    for (int c : nodes[n].operands)
      problem.readers[static_cast<size_t>(c)].push_back(static_cast<int>(n));
  }
  return problem;
}

std::set<int> Settled(const SimplifiedProblem& simple) {
  return {simple.settled.begin(), simple.settled.end()};
}

TEST(Simplify, AChainIsSettled) {
  const auto simple =
      Simplify(Problem(3, {{0, 1, {}, {0}}, {1, 2, {0}, {1}}, {2, 4, {1}, {2}}}, {2}));
  EXPECT_TRUE(simple.pieces.empty());
  EXPECT_EQ(simple.cost, 7);
  EXPECT_EQ(Settled(simple), (std::set<int>{0, 1, 2}));
}

TEST(Simplify, ADearerDetourGoes) {
  // Class 2 from class 0 for 5, or by way of class 1 for 2 + 4; class 0 is read by the sum, too.
  const auto simple = Simplify(Problem(
      4,
      {{0, 1, {}, {0}}, {1, 5, {0}, {2}}, {2, 2, {0}, {1}}, {3, 4, {1}, {2}}, {4, 1, {0, 2}, {3}}},
      {3}));
  EXPECT_TRUE(simple.pieces.empty());
  EXPECT_EQ(simple.cost, 7);
  EXPECT_EQ(Settled(simple), (std::set<int>{0, 1, 4}));
}

TEST(Simplify, ARoundTripIsNoWayToBegin) {
  // Class 1 is class 0 in another layout, and class 0 is class 1 back again, for nothing; another
  // reader wants class 1.
  const auto simple = Simplify(
      Problem(3, {{0, 9, {}, {0}}, {1, 0, {1}, {0}}, {2, 1, {0}, {1}}, {3, 1, {0, 1}, {2}}}, {2}));
  EXPECT_TRUE(simple.pieces.empty());
  EXPECT_EQ(simple.cost, 11);
}

TEST(Simplify, AChoiceOfTwoLayoutsRemains) {
  // Either layout may be made first, and the other one from it.
  const auto simple = Simplify(Problem(
      3,
      {{0, 9, {}, {0}}, {1, 8, {}, {1}}, {2, 1, {1}, {0}}, {3, 3, {0}, {1}}, {4, 2, {0, 1}, {2}}},
      {2}));
  EXPECT_EQ(simple.cost, 2);
  EXPECT_EQ(Settled(simple), std::set<int>{4});
  ASSERT_EQ(simple.pieces.size(), 1u);
  EXPECT_EQ(simple.pieces[0].problem.nodes.size(), 4u);
  EXPECT_EQ(simple.pieces[0].problem.roots.size(), 2u);
}

TEST(Simplify, ChoicesThatShareNothingArePiecesOfTheirOwn) {
  // Two values, each alone for 6 or from a part of 7 that both of its readers share; twice.
  std::vector<ChoiceProblem::ChoiceNode> nodes;
  std::vector<int> all;
  for (int first : {0, 3}) {
    nodes.push_back({-1, 7, {}, {first}});
    for (int c : {first + 1, first + 2}) {
      nodes.push_back({-1, 6, {}, {c}});
      nodes.push_back({-1, 1, {first}, {c}});
      all.push_back(c);
    }
  }
  nodes.push_back({-1, 1, all, {6}});
  const auto simple = Simplify(Problem(7, nodes, {6}));
  EXPECT_EQ(simple.cost, 1);
  ASSERT_EQ(simple.pieces.size(), 2u);
  for (const ProblemPiece& piece : simple.pieces) {
    EXPECT_EQ(piece.problem.nodes.size(), 5u);
    EXPECT_EQ(piece.problem.roots.size(), 2u);
    EXPECT_EQ(piece.nodes.size(), 5u);
  }
}

TEST(Simplify, WhatComesWithSomethingElseCostsNothing) {
  // One node computes classes 0 and 1 and is the only one for 0: 1 needs no other.
  const auto simple =
      Simplify(Problem(3, {{0, 5, {}, {0, 1}}, {1, 1, {}, {1}}, {2, 1, {0, 1}, {2}}}, {2}));
  EXPECT_TRUE(simple.pieces.empty());
  EXPECT_EQ(simple.cost, 6);
  const std::set<int> settled = Settled(simple);
  EXPECT_TRUE(settled.count(0) > 0 && settled.count(2) > 0);
}

}  // namespace
}  // namespace mendel
