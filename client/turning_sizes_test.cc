#include "client/turning_sizes.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(found, (std::set<int64_t>{999, 1000, 1001, 1002}));
}

TEST(TurningSizes, AreNoneWhereNothingChanges) {
  const auto found = TurningSizes([](int64_t) -> absl::StatusOr<PairRelations> {
    return PairRelations{true, true, One(1, 2)};
  });
  EXPECT_TRUE(found.empty());
}

TEST(TurningSizes, AreWhereOneProgramEnds) {
  const auto found = TurningSizes([](int64_t size) -> absl::StatusOr<PairRelations> {
    return PairRelations{size <= 5000, size <= 4000, {}};
  });
  EXPECT_EQ(found, (std::set<int64_t>{4000, 4001, 4002, 5000, 5001, 5002}));
}

TEST(TurningSizes, AreFoundBelowASizeThatIsRefused) {
  const auto found = TurningSizes([](int64_t size) -> absl::StatusOr<PairRelations> {
    if (size > 900) return absl::UnimplementedError("too large");
    return PairRelations{true, true, One(size, 700)};
  });
  EXPECT_EQ(found, (std::set<int64_t>{699, 700, 701, 702}));
}

}  // namespace
}  // namespace mendel
