// The operators that move elements, on small cases whose results were computed with ONNX's
// reference evaluator (opset 21), and by hand where that is silent: indices outside the tensor,
// ties, NaN, crops.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/movement_cases.h"
#include "graph/text.h"

namespace mendel {
namespace {

using testing::ElementsAre;
using testing::IsNan;

absl::StatusOr<std::vector<HostValue>> RunNodes(const std::string& input, const std::string& nodes,
                                                std::vector<double> x) {
  const size_t open = input.find('[');
  const std::string text = "graph \"case\" {\n    %0 = Input() {name = \"x\", dtype = \"" +
                           input.substr(0, open) + "\", shape = " + input.substr(open) + "}\n    " +
                           nodes + "\n}";
  MENDEL_ASSIGN_OR_RETURN(const Graph graph, ParseGraph(text));
  HostValue value{graph.type({graph.inputs()[0], 0}), std::move(x), {}};
  value.scalars.resize(static_cast<size_t>(NumElements(value.type)));
  return Evaluate(graph, std::vector<HostValue>{value});
}

std::vector<double> Iota(size_t count) {
  std::vector<double> values(count);
  for (size_t k = 0; k < count; ++k) values[k] = static_cast<double>(k);
  return values;
}

std::vector<double> Elements(const HostValue& value) {
  std::vector<double> elements;
  for (int64_t k = 0; k < NumElements(value.type); ++k) elements.push_back(value.At(k));
  return elements;
}

/// Result of `nodes` (which return one value) on %0 of type f32 `shape`.
std::vector<double> Result(const std::string& shape, const std::string& nodes,
                           std::vector<double> x) {
  const auto results = RunNodes("f32" + shape, nodes, std::move(x));
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? Elements((*results)[0]) : std::vector<double>();
}

absl::StatusCode Code(const std::string& shape, const std::string& node) {
  return RunNodes("f32" + shape, node + "\n return \"y\" = %1", {}).status().code();
}

class MovementCase : public testing::TestWithParam<MovementOpCase> {};

TEST_P(MovementCase, AgreesWithOnnx) {
  const MovementOpCase& c = GetParam();
  const auto results = RunNodes(c.input, c.nodes, Iota(100));
  ASSERT_TRUE(results.ok()) << results.status();
  const std::string type = TypeString((*results)[0].type);
  std::string shape;
  for (char letter : type.substr(type.find('[')))
    shape += letter == ',' ? std::string(", ") : std::string(1, letter);
  EXPECT_EQ(shape, c.shape);
  EXPECT_EQ(Elements((*results)[0]), c.expected);
}

INSTANTIATE_TEST_SUITE_P(Onnx, MovementCase, testing::ValuesIn(MovementOpCases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Movement, CropsBeforePadding) {
  // [1, 2] remains; reflection sees nothing of what was cropped.
  EXPECT_THAT(Result("[4]", R"(%1 = Pad(%0) {pads = [-1, -1]}  return "y" = %1)", Iota(4)),
              ElementsAre(1, 2));
  EXPECT_THAT(
      Result("[4]", R"(%1 = Pad(%0) {pads = [-1, 2], mode = "reflect"}  return "y" = %1)", Iota(4)),
      ElementsAre(1, 2, 3, 2, 1));
  EXPECT_THAT(
      Result("[4]", R"(%1 = Pad(%0) {pads = [-2, 1], mode = "wrap"}  return "y" = %1)", Iota(4)),
      ElementsAre(2, 3, 2));
}

TEST(Movement, IndicesOutsideReadNothing) {
  const std::string constant = "%1 = Constant() {value = i64[3]{0, 3, -4}}\n";
  EXPECT_THAT(
      Result("[3]", constant + R"(%2 = Gather(%0, %1) {axis = 0}  return "y" = %2)", Iota(3)),
      ElementsAre(0, IsNan(), IsNan()));
  EXPECT_THAT(Result("[3]", constant + R"(%2 = GatherElements(%0, %1) {axis = 0}  return "y" = %2)",
                     Iota(3)),
              ElementsAre(0, IsNan(), IsNan()));
  const std::string updates =
      "%1 = Constant() {value = i64[2]{1, 7}}\n%2 = Constant() {value = f32[2]{5, 6}}\n";
  EXPECT_THAT(
      Result("[3]", updates + R"(%3 = ScatterElements(%0, %1, %2) {axis = 0}  return "y" = %3)",
             Iota(3)),
      ElementsAre(0, 5, 2));
}

TEST(Movement, OneHotWithNegativeAndOutsideIndices) {
  EXPECT_THAT(Result("[2]", R"(%1 = Constant() {value = i64[4]{0, -1, 2, 5}}
      %2 = OneHot(%1, %0) {axis = 0, depth = 3}  return "y" = %2)",
                     {7, 9}),
              ElementsAre(9, 7, 7, 7, 7, 7, 7, 7, 7, 9, 9, 7));
}

TEST(Movement, TopKOrdersTiesByPositionAndNanFirst) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string largest = R"(%1 = TopK(%0) {k = 4, axis = 0}  return "y" = %1.1)";
  EXPECT_THAT(Result("[5]", largest, {2, 5, 5, nan, 2}), ElementsAre(3, 1, 2, 0));
  const std::string smallest = R"(%1 = TopK(%0) {k = 4, axis = 0, largest = 0}  return "y" = %1.1)";
  EXPECT_THAT(Result("[5]", smallest, {2, 5, 5, nan, 2}), ElementsAre(0, 4, 1, 2));
}

TEST(Movement, RefusesWhatDoesNotFit) {
  const auto kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(Code("[2,3]", "%1 = Transpose(%0) {perm = [0, 0]}"), kBad);
  EXPECT_EQ(Code("[2,3]", "%1 = Split(%0) {axis = 1, sizes = [2, 2]}"), kBad);
  EXPECT_EQ(Code("[2,3]", "%1 = Slice(%0) {starts = [0, 0], ends = [2, 4], steps = [1, 1]}"), kBad);
  EXPECT_EQ(Code("[2,3]", "%1 = Slice(%0) {starts = [0, 0], ends = [2, 3], steps = [1, 0]}"), kBad);
  EXPECT_EQ(Code("[3]", "%1 = Pad(%0) {pads = [-2, -2]}"), kBad);
  EXPECT_EQ(Code("[3]", "%1 = Pad(%0) {pads = [1, 1], mode = \"mirror\"}"), kBad);
  EXPECT_EQ(Code("[3]", "%1 = Expand(%0) {shape = [1]}"), kBad);
  EXPECT_EQ(Code("[3]", "%1 = Tile(%0) {repeats = [1, 2]}"), kBad);
  EXPECT_EQ(Code("[3]", "%1 = TopK(%0) {k = 4, axis = 0}"), kBad);
  EXPECT_EQ(Code("[1,3,2,2]", "%1 = DepthToSpace(%0) {blocksize = 2}"), kBad);
  EXPECT_EQ(Code("[3]", "%1 = Trilu(%0) {}"), kBad);
  EXPECT_EQ(Code("[3]", "%1 = Gather(%0, %0) {axis = 0}"), kBad);
}

}  // namespace
}  // namespace mendel
