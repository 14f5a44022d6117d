#include "client/partial_tables.h"

#include <gtest/gtest.h>

namespace mendel {
namespace {

TableReads Reads(double filled, std::vector<bool> rows) {
  const TensorType type{DType::kF32, {static_cast<int64_t>(rows.size())}};
  return {{"key", {Tensor::Filled(type, filled), std::move(rows)}}};
}

TEST(PartialTables, ATableIsPartialWhereOtherSizesReadOtherRows) {
  PartialTables tables;
  tables.Add(Reads(1, {true, false, false}));
  EXPECT_TRUE(tables.Unread().empty()) << "no size reads other rows";
  tables.Add(Reads(1, {false, true, false}));
  EXPECT_EQ(tables.Unread().size(), 1);
  tables.Add(Reads(1, {true, true, true}));
  EXPECT_TRUE(tables.Unread().empty()) << "all rows were read";
}

TEST(PartialTables, ATableThatIsNotIndexedIsReadWhole) {
  PartialTables tables;
  tables.Add(Reads(1, {true, false, false}));
  tables.Add(Reads(1, {true, true, false}));
  EXPECT_EQ(tables.Unread().size(), 1);
  tables.Add({});
  EXPECT_TRUE(tables.Unread().empty());
}

TEST(PartialTables, EqualTablesAreNoDoubt) {
  const auto unread = [](double filled) {
    PartialTables tables;
    tables.Add(Reads(filled, {true, false, false}));
    tables.Add(Reads(filled, {false, true, false}));
    return tables.Unread();
  };
  EXPECT_TRUE(SameTables(unread(1), unread(1)));
  EXPECT_FALSE(SameTables(unread(1), unread(2)));
  EXPECT_FALSE(SameTables(unread(1), {}));
  EXPECT_FALSE(SameTables({}, unread(1)));
}

}  // namespace
}  // namespace mendel
