#include "client/paired_dimensions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mendel {
namespace {

using testing::HasSubstr;

DeclaredValue Value(const std::string& name, const std::vector<std::string>& dimensions) {
  DeclaredValue value{name, DType::kF32, true, {}};
  for (const std::string& dimension : dimensions) {
    const bool fixed = !dimension.empty() && dimension[0] >= '0' && dimension[0] <= '9';
    value.shape.push_back({fixed ? std::stoll(dimension) : -1, fixed ? "" : dimension});
  }
  return value;
}

ModelInterface Model(std::vector<DeclaredValue> inputs) {
  ModelInterface model;
  model.inputs = std::move(inputs);
  return model;
}

TEST(PairDimensions, RenamedAndUnnamedOnesAreOne) {
  const ModelInterface a = Model({Value("x", {"N", "3", "L"}), Value("y", {"L"})});
  const ModelInterface b = Model({Value("x", {"batch", "3", ""}), Value("data", {"?"})});
  const DimensionGroups groups =
      PairDimensions(a, b, {{"x", "x"}, {"y", "data"}}, {"N", "L"}, {"batch", "x:2", "data:0"});
  EXPECT_EQ(groups,
            (DimensionGroups{{"N", {{"N"}, {"batch"}}}, {"L", {{"L"}, {"x:2", "data:0"}}}}));
  EXPECT_EQ(SizesOfNames(groups, &DimensionGroup::a, {{"N", 2}, {"L", 5}}),
            (Sizes{{"N", 2}, {"L", 5}}));
  EXPECT_EQ(SizesOfNames(groups, &DimensionGroup::b, {{"N", 2}, {"L", 5}}),
            (Sizes{{"batch", 2}, {"x:2", 5}, {"data:0", 5}}));
  EXPECT_THAT(NotesOnGroups(groups), testing::SizeIs(1));
}

TEST(PairDimensions, DimensionsOfPairedInputsAreOne) {
  const ModelInterface a = Model({Value("p", {"P"}), Value("q", {"Q"}), Value("r", {"R"})});
  const ModelInterface b = Model({Value("z", {"Z"}), Value("q", {"K"}), Value("w", {"W"})});
  EXPECT_EQ(
      PairDimensions(a, b, {{"p", "w"}, {"q", "q"}, {"r", "z"}}, {"P", "Q", "R"}, {"Z", "K", "W"}),
      (DimensionGroups{{"P", {{"P"}, {"W"}}}, {"Q", {{"Q"}, {"K"}}}, {"R", {{"R"}, {"Z"}}}}));
}

TEST(PairDimensions, NamesAreAModelsOwn) {
  const ModelInterface a = Model({Value("x", {"N", "M"})}), b = Model({Value("x", {"M", "N"})});
  EXPECT_EQ(PairDimensions(a, b, {{"x", "x"}}, {"N", "M"}, {"N", "M"}),
            (DimensionGroups{{"N", {{"N"}, {"M"}}}, {"M", {{"M"}, {"N"}}}}));
  EXPECT_EQ(PairDimensions(a, {}, {}, {"N"}, {"N", "K"}),
            (DimensionGroups{{"N", {{"N"}, {"N"}}}, {"K of B", {{}, {"K"}}}}));
}

TEST(PairDimensions, TwoNamesOfOneModelAreReported) {
  const ModelInterface a = Model({Value("x", {"N"}), Value("y", {"M"})});
  const ModelInterface b = Model({Value("x", {"N"}), Value("y", {"N"})});
  const DimensionGroups groups = PairDimensions(a, b, {{"x", "x"}, {"y", "y"}}, {"N", "M"}, {"N"});
  EXPECT_EQ(groups, (DimensionGroups{{"N", {{"N", "M"}, {"N"}}}}));
  const std::vector<std::string> notes = NotesOnGroups(groups);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("dimensions 'M', 'N' of A have one size"));
}

}  // namespace
}  // namespace mendel
