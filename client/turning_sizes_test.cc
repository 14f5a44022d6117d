#include "client/turning_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/compare_at_sizes.h"
#include "client/size_looks.h"
#include "graph/emitter.h"

namespace mendel {
namespace {

SizeRelations One(int64_t a, int64_t b) {
  SizeRelations relations;
  AddSizeRelation("one", a, b, relations);
  return relations;
}

TEST(TurningSizes, AreWhereARelationChanges) {
  const auto found = TurningSizes([](int64_t size) -> absl::StatusOr<PairRelations> {
    return PairRelations{true, true, One(size, 1000)};
  });
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.sizes, (std::set<int64_t>{999, 1000, 1001, 1002}));
}

TEST(TurningSizes, AreNoneWhereNothingChanges) {
  const auto found = TurningSizes([](int64_t) -> absl::StatusOr<PairRelations> {
    return PairRelations{true, true, One(1, 2)};
  });
  EXPECT_TRUE(found.complete);
  EXPECT_TRUE(found.sizes.empty());
}

TEST(TurningSizes, AreWhereOneProgramEnds) {
  const auto found = TurningSizes([](int64_t size) -> absl::StatusOr<PairRelations> {
    return PairRelations{size <= 5000, size <= 4000, {}};
  });
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.sizes, (std::set<int64_t>{4000, 4001, 4002, 5000, 5001, 5002}));
}

TEST(TurningSizes, AreFoundBelowASizeThatIsRefused) {
  const auto found = TurningSizes([](int64_t size) -> absl::StatusOr<PairRelations> {
    if (size > 900) return absl::UnimplementedError("too large");
    return PairRelations{true, true, One(size, 700)};
  });
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.sizes, (std::set<int64_t>{699, 700, 701, 702}));
}

TEST(TurningSizes, AreLeftOutWhenTimeEnds) {
  int imports = 0;
  const auto found = TurningSizes([&](int64_t size) -> absl::StatusOr<PairRelations> {
    if (++imports > 8) return absl::DeadlineExceededError("out of time");
    return PairRelations{true, true, One(size, 1000)};
  });
  EXPECT_FALSE(found.complete);
  EXPECT_TRUE(found.sizes.empty());
  EXPECT_EQ(imports, 9);
}

/// A pair of one program with the open dimension N.
Pair OnePair() {
  Emitter e("one");
  e.Output("y", e.Op("Relu", {e.Input("x", {DType::kF32, {1}})}));
  const Graph graph = *e.Finish();
  return {graph, graph, {}, {"N"}, {}};
}

using DifferAtOnceFunction = std::function<absl::StatusOr<bool>(const Pair&, bool folded)>;

absl::StatusOr<bool> NeverDiffer(const Pair&, bool) { return false; }

/// The verdict on equal programs whose relations come from `relations`.
PairVerdict VerdictBy(
    const std::function<absl::StatusOr<PairRelations>(const Sizes& sizes)>& relations,
    const DifferAtOnceFunction& differ_at_once = &NeverDiffer) {
  PairVerdict verdict;
  verdict.report.verdict = Verdict::kEquivalent;
  Pair pair = OnePair();
  const SizedComparison by = {[](const Sizes&) -> absl::StatusOr<Pair> { return OnePair(); },
                              [&](const Sizes&, const Pair&) -> absl::StatusOr<PairVerdict> {
                                PairVerdict equal;
                                equal.report.verdict = Verdict::kEquivalent;
                                return equal;
                              },
                              relations, differ_at_once, [] { return Deadline::Never(); }};
  const absl::Status status = CompareAtSizes(by, pair, verdict);
  EXPECT_TRUE(status.ok()) << status;
  return verdict;
}

TEST(CompareAtSizes, SaysThatTheSearchForSizesIsNotComplete) {
  const PairVerdict verdict = VerdictBy([](const Sizes&) -> absl::StatusOr<PairRelations> {
    return absl::DeadlineExceededError("out of time");
  });
  EXPECT_TRUE(IsEquivalent(verdict));
  ASSERT_EQ(verdict.notes.size(), 1u);
  EXPECT_THAT(verdict.notes[0], testing::HasSubstr("sizes of 'N'"));
}

TEST(CompareAtSizes, DoubtsWhereASmallSizeIsNotSupported) {
  for (const int64_t largest : {1024, 20000}) {
    const PairVerdict verdict = VerdictBy([&](const Sizes& sizes) -> absl::StatusOr<PairRelations> {
      if (sizes.at("N") > largest) return absl::UnimplementedError("too many steps");
      return PairRelations{};
    });
    EXPECT_EQ(IsEquivalent(verdict), largest > 4096);
    ASSERT_EQ(verdict.notes.size(), 1u);
    EXPECT_THAT(verdict.notes[0], testing::HasSubstr("too many steps"));
  }
}

TEST(CompareAtSizes, DoubtsOutputsOfOtherShapes) {
  for (const int64_t most : {1000, 100000}) {
    const PairVerdict verdict = VerdictBy([&](const Sizes& sizes) -> absl::StatusOr<PairRelations> {
      PairRelations relations;
      relations.outputs_a = {{sizes.at("N")}};
      relations.outputs_b = {{std::min(sizes.at("N"), most)}};
      return relations;
    });
    EXPECT_EQ(IsEquivalent(verdict), most > 65536) << verdict.report.reason;
  }
}

TEST(CompareAtSizes, DoubtsTablesThatDifferInRowsWhichNoSizeReads) {
  for (const bool same : {true, false}) {
    const PairVerdict verdict = VerdictBy([&](const Sizes& sizes) -> absl::StatusOr<PairRelations> {
      const TensorType type{DType::kF32, {5000}};
      std::vector<bool> rows(5000, false);
      rows[static_cast<size_t>(sizes.at("N") % 5000)] = true;
      PairRelations relations;
      relations.tables_a = {{"a", {Tensor::Filled(type, 1), rows}}};
      relations.tables_b = {{"b", {Tensor::Filled(type, same ? 1 : 2), rows}}};
      return relations;
    });
    EXPECT_EQ(IsEquivalent(verdict), same) << verdict.report.reason;
  }
}

absl::StatusOr<PairRelations> NoRelations(const Sizes&) { return PairRelations{}; }

TEST(CompareAtSizes, LooksAtSmallSizesAndAtFourLargeOnes) {
  int looks = 0;
  const PairVerdict verdict =
      VerdictBy(&NoRelations, [&](const Pair&, bool folded) -> absl::StatusOr<bool> {
        EXPECT_FALSE(folded);
        ++looks;
        return false;
      });
  EXPECT_TRUE(IsEquivalent(verdict));
  // 4 to 16, of which 5 is compared, and two large primes and multiples.
  EXPECT_EQ(looks, 12 + 4);
}

TEST(CompareAtSizes, DoubtsNumbersThatDifferWhereItLooks) {
  int looks = 0;
  const PairVerdict verdict = VerdictBy(
      &NoRelations, [&](const Pair&, bool) -> absl::StatusOr<bool> { return ++looks == 13; });
  EXPECT_EQ(verdict.report.verdict, Verdict::kUnproven);
  EXPECT_EQ(verdict.report.reason, "numbers differ at the sizes N = 65521");
}

TEST(SizesToLookAt, DimensionsStandBesideEachOther) {
  const TurningSets turning = {{"B", {}}, {"S", {64, 65}}};
  const std::vector<Sizes> all = SizesToLookAt(turning, 1);
  for (const Sizes& wanted :
       {Sizes{{"B", 1}, {"S", 65}}, Sizes{{"B", 9}, {"S", 1}}, Sizes{{"B", 3}, {"S", 16}},
        Sizes{{"B", 11}, {"S", 11}}, Sizes{{"B", 64}, {"S", 64}}}) {
    EXPECT_THAT(all, testing::Contains(wanted));
  }
  const TurningSets many = {{"A", {10, 11, 12, 13, 14, 15}},
                            {"B", {20, 21, 22, 23, 24, 25}},
                            {"C", {30, 31, 32, 33, 34, 35}}};
  EXPECT_LT(SizesToLookAt(many, 1).size(), 300u);
  EXPECT_EQ(SizesToLookAt(many, 1), SizesToLookAt(many, 1));
}

TEST(SizesToLookAt, LargerSizesCostMore) {
  EXPECT_TRUE(IsAtLeast({{"N", 4}, {"M", 3}}, {{"N", 4}, {"M", 2}}));
  EXPECT_FALSE(IsAtLeast({{"N", 4}, {"M", 1}}, {{"N", 4}, {"M", 2}}));
}

/// The programs exist, and cannot be compared: their outputs have other shapes.
TEST(CompareAtSizes, DoubtsInterfacesThatDifferAtASize) {
  PairVerdict verdict;
  verdict.report.verdict = Verdict::kEquivalent;
  Pair pair = OnePair();
  const SizedComparison by = {
      [](const Sizes&) -> absl::StatusOr<Pair> { return absl::InvalidArgumentError("shapes"); },
      [](const Sizes&, const Pair&) -> absl::StatusOr<PairVerdict> {
        return absl::InternalError("not reached");
      },
      &NoRelations, &NeverDiffer, [] { return Deadline::Never(); }};
  ASSERT_TRUE(CompareAtSizes(by, pair, verdict).ok());
  EXPECT_EQ(verdict.report.verdict, Verdict::kUnproven);
  EXPECT_EQ(verdict.report.reason, "at the sizes N = 2: shapes");
}

/// y = x + relu(n - 900) for x[n], or x alone.
Graph Kinked(int64_t n, bool kinked) {
  Emitter e("kinked");
  const ValueId x = e.Input("x", {DType::kF32, {n}});
  const ValueId past = e.Constant(Tensor::Scalar(DType::kF32, static_cast<double>(n - 900)));
  e.Output("y", e.Add(x, e.Op(kinked ? "Relu" : "Sub",
                              kinked ? std::vector{past} : std::vector{past, past})));
  return *e.Finish();
}

TEST(LargeSizes, OneEvaluationShowsAKink) {
  for (const int64_t n : {800, 1021}) {
    const Pair pair = {Kinked(n, true), Kinked(n, false), {}, {}, {}};
    ASSERT_TRUE(IsCheapToEvaluate(pair));
    for (const WeightMode weights : {WeightMode::kExact, WeightMode::kSymbolic}) {
      const auto differ = DifferAtOnce(pair, false, weights, 1, Deadline::Never());
      ASSERT_TRUE(differ.ok()) << differ.status();
      EXPECT_EQ(*differ, n > 900);
    }
  }
}

TEST(LargeSizes, LargeProgramsAreNotEvaluated) {
  Emitter e("large");
  const ValueId x = e.Input("x", {DType::kF32, {1 << 14, 1 << 10}});
  e.Output("y", e.Op("Relu", {e.Op("Neg", {x})}));
  const Graph graph = *e.Finish();
  EXPECT_FALSE(IsCheapToEvaluate({graph, graph, {}, {}, {}}));
}

TEST(CompareAtSizes, DoubtsAProgramThatEndsAlone) {
  const PairVerdict verdict = VerdictBy([](const Sizes& sizes) -> absl::StatusOr<PairRelations> {
    return PairRelations{true, sizes.at("N") <= 4000, {}};
  });
  EXPECT_EQ(verdict.report.verdict, Verdict::kUnproven);
  EXPECT_THAT(verdict.report.reason,
              testing::HasSubstr("only A is a program of the sizes N = 4001"));
  EXPECT_TRUE(verdict.notes.empty());
}

}  // namespace
}  // namespace mendel
