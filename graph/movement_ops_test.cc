// The operators that move elements, on small cases whose results were computed with ONNX's reference evaluator (opset 21), and
// by hand where that is silent: indices outside the tensor, ties, NaN, crops.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/text.h"

namespace mendel {
namespace {

using testing::ElementsAre;
using testing::IsNan;

absl::StatusOr<std::vector<HostValue>> RunNodes(const std::string& input, const std::string& nodes, std::vector<double> x) {
  const size_t open = input.find('[');
  const std::string text = "graph \"case\" {\n    %0 = Input() {name = \"x\", dtype = \"" + input.substr(0, open) +
                           "\", shape = " + input.substr(open) + "}\n    " + nodes + "\n}";
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
std::vector<double> Result(const std::string& shape, const std::string& nodes, std::vector<double> x) {
  const auto results = RunNodes("f32" + shape, nodes, std::move(x));
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? Elements((*results)[0]) : std::vector<double>();
}

absl::StatusCode Code(const std::string& shape, const std::string& node) {
  return RunNodes("f32" + shape, node + "\n return \"y\" = %1", {}).status().code();
}

struct Case {
  const char* name;
  const char* input;  ///< its elements are 0, 1, 2, ...
  const char* nodes;
  const char* shape;
  std::vector<double> expected;
};

class MovementCase : public testing::TestWithParam<Case> {};

TEST_P(MovementCase, AgreesWithOnnx) {
  const Case& c = GetParam();
  const auto results = RunNodes(c.input, c.nodes, Iota(100));
  ASSERT_TRUE(results.ok()) << results.status();
  const std::string type = TypeString((*results)[0].type);
  std::string shape;
  for (char letter : type.substr(type.find('['))) shape += letter == ',' ? std::string(", ") : std::string(1, letter);
  EXPECT_EQ(shape, c.shape);
  EXPECT_EQ(Elements((*results)[0]), c.expected);
}

const Case kCases[] = {
    {"transpose",
     "f32[2,3,2]",
     R"(%1 = Transpose(%0) {perm = [2, 0, 1]}
    return "y" = %1)",
     "[2, 2, 3]",
     {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11}},
    {"split_0",
     "f32[2,5]",
     R"(%1 = Split(%0) {axis = 1, sizes = [2, 3]}
    return "y" = %1)",
     "[2, 2]",
     {0, 1, 5, 6}},
    {"split_1",
     "f32[2,5]",
     R"(%1 = Split(%0) {axis = 1, sizes = [2, 3]}
    return "y" = %1.1)",
     "[2, 3]",
     {2, 3, 4, 7, 8, 9}},
    {"slice_step",
     "f32[4,5]",
     R"(%1 = Slice(%0) {starts = [1, 0], ends = [4, 5], steps = [2, 3]}
    return "y" = %1)",
     "[2, 2]",
     {5, 8, 15, 18}},
    {"slice_reverse",
     "f32[4,5]",
     R"(%1 = Slice(%0) {starts = [3, 4], ends = [-1, 0], steps = [-1, -2]}
    return "y" = %1)",
     "[4, 2]",
     {19, 17, 14, 12, 9, 7, 4, 2}},
    {"pad_constant",
     "f32[2,3]",
     R"(%1 = Pad(%0) {pads = [0, 2, 1, 3], mode = "constant", value = 7.0}
    return "y" = %1)",
     "[3, 8]",
     {7, 7, 0, 1, 2, 7, 7, 7, 7, 7, 3, 4, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}},
    {"pad_edge",
     "f32[2,3]",
     R"(%1 = Pad(%0) {pads = [0, 2, 1, 3], mode = "edge", value = 0.0}
    return "y" = %1)",
     "[3, 8]",
     {0, 0, 0, 1, 2, 2, 2, 2, 3, 3, 3, 4, 5, 5, 5, 5, 3, 3, 3, 4, 5, 5, 5, 5}},
    {"pad_reflect",
     "f32[2,3]",
     R"(%1 = Pad(%0) {pads = [0, 2, 1, 2], mode = "reflect", value = 0.0}
    return "y" = %1)",
     "[3, 7]",
     {2, 1, 0, 1, 2, 1, 0, 5, 4, 3, 4, 5, 4, 3, 2, 1, 0, 1, 2, 1, 0}},
    {"pad_wrap",
     "f32[2,3]",
     R"(%1 = Pad(%0) {pads = [0, 2, 1, 3], mode = "wrap", value = 0.0}
    return "y" = %1)",
     "[3, 8]",
     {1, 2, 0, 1, 2, 0, 1, 2, 4, 5, 3, 4, 5, 3, 4, 5, 1, 2, 0, 1, 2, 0, 1, 2}},
    {"pad_reflect_twice",
     "f32[1,4]",
     R"(%1 = Pad(%0) {pads = [0, 5, 0, 7], mode = "reflect"}
    return "y" = %1)",
     "[1, 16]",
     {1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2, 3, 2}},
    {"expand",
     "f32[3,1]",
     R"(%1 = Expand(%0) {shape = [2, 3, 2]}
    return "y" = %1)",
     "[2, 3, 2]",
     {0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}},
    {"tile",
     "f32[2,2]",
     R"(%1 = Tile(%0) {repeats = [2, 3]}
    return "y" = %1)",
     "[4, 6]",
     {0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3}},
    {"gather",
     "f32[2,3,2]",
     R"(%1 = Constant() {value = i64[2,2]{2, -1, 0, -3}}
    %2 = Gather(%0, %1) {axis = 1}
    return "y" = %2)",
     "[2, 2, 2, 2]",
     {4, 5, 4, 5, 0, 1, 0, 1, 10, 11, 10, 11, 6, 7, 6, 7}},
    {"gather_scalar",
     "f32[3,2]",
     R"(%1 = Constant() {value = i64[]{-1}}
    %2 = Gather(%0, %1) {axis = 0}
    return "y" = %2)",
     "[2]",
     {4, 5}},
    {"gather_elements",
     "f32[3,3]",
     R"(%1 = Constant() {value = i64[2,2]{1, -1, 0, -3}}
    %2 = GatherElements(%0, %1) {axis = 0}
    return "y" = %2)",
     "[2, 2]",
     {3, 7, 0, 1}},
    {"gather_elements_1",
     "f32[3,3]",
     R"(%1 = Constant() {value = i64[3,2]{2, 0, -1, 1, 1, 0}}
    %2 = GatherElements(%0, %1) {axis = 1}
    return "y" = %2)",
     "[3, 2]",
     {2, 0, 5, 4, 7, 6}},
    {"gather_nd",
     "f32[2,2,2]",
     R"(%1 = Constant() {value = i64[2,2]{0, 1, 1, -2}}
    %2 = GatherND(%0, %1) {}
    return "y" = %2)",
     "[2, 2]",
     {2, 3, 4, 5}},
    {"gather_nd_batch",
     "f32[2,2,2]",
     R"(%1 = Constant() {value = i64[2,1]{1, 0}}
    %2 = GatherND(%0, %1) {batch_dims = 1}
    return "y" = %2)",
     "[2, 2]",
     {2, 3, 4, 5}},
    {"scatter_nd_none",
     "f32[4,2]",
     R"(%1 = Constant() {value = i64[3,1]{3, -3, 3}}
    %2 = Constant() {value = f32[3,2]{10, 20, 30, 40, -5, 6}}
    %3 = ScatterND(%0, %1, %2) {reduction = "none"}
    return "y" = %3)",
     "[4, 2]",
     {0, 1, 30, 40, 4, 5, -5, 6}},
    {"scatter_nd_add",
     "f32[4,2]",
     R"(%1 = Constant() {value = i64[3,1]{3, -3, 3}}
    %2 = Constant() {value = f32[3,2]{10, 20, 30, 40, -5, 6}}
    %3 = ScatterND(%0, %1, %2) {reduction = "add"}
    return "y" = %3)",
     "[4, 2]",
     {0, 1, 32, 43, 4, 5, 11, 33}},
    {"scatter_nd_mul",
     "f32[4,2]",
     R"(%1 = Constant() {value = i64[3,1]{3, -3, 3}}
    %2 = Constant() {value = f32[3,2]{10, 20, 30, 40, -5, 6}}
    %3 = ScatterND(%0, %1, %2) {reduction = "mul"}
    return "y" = %3)",
     "[4, 2]",
     {0, 1, 60, 120, 4, 5, -300, 840}},
    {"scatter_nd_max",
     "f32[4,2]",
     R"(%1 = Constant() {value = i64[3,1]{3, -3, 3}}
    %2 = Constant() {value = f32[3,2]{10, 20, 30, 40, -5, 6}}
    %3 = ScatterND(%0, %1, %2) {reduction = "max"}
    return "y" = %3)",
     "[4, 2]",
     {0, 1, 30, 40, 4, 5, 10, 20}},
    {"scatter_nd_min",
     "f32[4,2]",
     R"(%1 = Constant() {value = i64[3,1]{3, -3, 3}}
    %2 = Constant() {value = f32[3,2]{10, 20, 30, 40, -5, 6}}
    %3 = ScatterND(%0, %1, %2) {reduction = "min"}
    return "y" = %3)",
     "[4, 2]",
     {0, 1, 2, 3, 4, 5, -5, 6}},
    {"scatter_elements_none",
     "f32[3,3]",
     R"(%1 = Constant() {value = i64[2,3]{1, -1, 2, 1, 0, 2}}
    %2 = Constant() {value = f32[2,3]{10, 20, 30, 40, 50, 60}}
    %3 = ScatterElements(%0, %1, %2) {axis = 0, reduction = "none"}
    return "y" = %3)",
     "[3, 3]",
     {0, 50, 2, 40, 4, 5, 6, 20, 60}},
    {"scatter_elements_add",
     "f32[3,3]",
     R"(%1 = Constant() {value = i64[2,3]{1, -1, 2, 1, 0, 2}}
    %2 = Constant() {value = f32[2,3]{10, 20, 30, 40, 50, 60}}
    %3 = ScatterElements(%0, %1, %2) {axis = 0, reduction = "add"}
    return "y" = %3)",
     "[3, 3]",
     {0, 51, 2, 53, 4, 5, 6, 27, 98}},
    {"scatter_elements_mul",
     "f32[3,3]",
     R"(%1 = Constant() {value = i64[2,3]{1, -1, 2, 1, 0, 2}}
    %2 = Constant() {value = f32[2,3]{10, 20, 30, 40, 50, 60}}
    %3 = ScatterElements(%0, %1, %2) {axis = 0, reduction = "mul"}
    return "y" = %3)",
     "[3, 3]",
     {0, 50, 2, 1200, 4, 5, 6, 140, 14400}},
    {"scatter_elements_max",
     "f32[3,3]",
     R"(%1 = Constant() {value = i64[2,3]{1, -1, 2, 1, 0, 2}}
    %2 = Constant() {value = f32[2,3]{10, 20, 30, 40, 50, 60}}
    %3 = ScatterElements(%0, %1, %2) {axis = 0, reduction = "max"}
    return "y" = %3)",
     "[3, 3]",
     {0, 50, 2, 40, 4, 5, 6, 20, 60}},
    {"scatter_elements_min",
     "f32[3,3]",
     R"(%1 = Constant() {value = i64[2,3]{1, -1, 2, 1, 0, 2}}
    %2 = Constant() {value = f32[2,3]{10, 20, 30, 40, 50, 60}}
    %3 = ScatterElements(%0, %1, %2) {axis = 0, reduction = "min"}
    return "y" = %3)",
     "[3, 3]",
     {0, 1, 2, 3, 4, 5, 6, 7, 8}},
    {"depth_to_space_DCR",
     "f32[1,8,1,2]",
     R"(%1 = DepthToSpace(%0) {blocksize = 2, mode = "DCR"}
    return "y" = %1)",
     "[1, 2, 2, 4]",
     {0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15}},
    {"depth_to_space_CRD",
     "f32[1,8,1,2]",
     R"(%1 = DepthToSpace(%0) {blocksize = 2, mode = "CRD"}
    return "y" = %1)",
     "[1, 2, 2, 4]",
     {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15}},
    {"space_to_depth",
     "f32[1,2,2,4]",
     R"(%1 = SpaceToDepth(%0) {blocksize = 2}
    return "y" = %1)",
     "[1, 8, 1, 2]",
     {0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15}},
    {"trilu_1_0",
     "f32[3,4]",
     R"(%1 = Trilu(%0) {upper = 1, k = 0}
    return "y" = %1)",
     "[3, 4]",
     {0, 1, 2, 3, 0, 5, 6, 7, 0, 0, 10, 11}},
    {"trilu_1_m1",
     "f32[3,4]",
     R"(%1 = Trilu(%0) {upper = 1, k = -1}
    return "y" = %1)",
     "[3, 4]",
     {0, 1, 2, 3, 4, 5, 6, 7, 0, 9, 10, 11}},
    {"trilu_1_2",
     "f32[3,4]",
     R"(%1 = Trilu(%0) {upper = 1, k = 2}
    return "y" = %1)",
     "[3, 4]",
     {0, 0, 2, 3, 0, 0, 0, 7, 0, 0, 0, 0}},
    {"trilu_0_0",
     "f32[3,4]",
     R"(%1 = Trilu(%0) {upper = 0, k = 0}
    return "y" = %1)",
     "[3, 4]",
     {0, 0, 0, 0, 4, 5, 0, 0, 8, 9, 10, 0}},
    {"trilu_0_m2",
     "f32[3,4]",
     R"(%1 = Trilu(%0) {upper = 0, k = -2}
    return "y" = %1)",
     "[3, 4]",
     {0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0}},
    {"trilu_0_1",
     "f32[3,4]",
     R"(%1 = Trilu(%0) {upper = 0, k = 1}
    return "y" = %1)",
     "[3, 4]",
     {0, 1, 0, 0, 4, 5, 6, 0, 8, 9, 10, 11}},
    {"reverse_sequence",
     "f32[4,2]",
     R"(%1 = Constant() {value = i64[2]{3, 1}}
    %2 = ReverseSequence(%0, %1) {batch_axis = 1, time_axis = 0}
    return "y" = %2)",
     "[4, 2]",
     {4, 1, 2, 3, 0, 5, 6, 7}},
    {"top_k_1_0",
     "f32[2,4]",
     R"(%1 = TopK(%0) {k = 3, axis = 1, largest = 1}
    return "y" = %1)",
     "[2, 3]",
     {3, 2, 1, 7, 6, 5}},
    {"top_k_1_1",
     "f32[2,4]",
     R"(%1 = TopK(%0) {k = 3, axis = 1, largest = 1}
    return "y" = %1.1)",
     "[2, 3]",
     {3, 2, 1, 3, 2, 1}},
    {"top_k_0_0",
     "f32[2,4]",
     R"(%1 = TopK(%0) {k = 3, axis = 1, largest = 0}
    return "y" = %1)",
     "[2, 3]",
     {0, 1, 2, 4, 5, 6}},
    {"top_k_0_1",
     "f32[2,4]",
     R"(%1 = TopK(%0) {k = 3, axis = 1, largest = 0}
    return "y" = %1.1)",
     "[2, 3]",
     {0, 1, 2, 0, 1, 2}},
};

INSTANTIATE_TEST_SUITE_P(Onnx, MovementCase, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Movement, CropsBeforePadding) {
  // [1, 2] remains; reflection sees nothing of what was cropped.
  EXPECT_THAT(Result("[4]", R"(%1 = Pad(%0) {pads = [-1, -1]}  return "y" = %1)", Iota(4)), ElementsAre(1, 2));
  EXPECT_THAT(Result("[4]", R"(%1 = Pad(%0) {pads = [-1, 2], mode = "reflect"}  return "y" = %1)", Iota(4)),
              ElementsAre(1, 2, 3, 2, 1));
  EXPECT_THAT(Result("[4]", R"(%1 = Pad(%0) {pads = [-2, 1], mode = "wrap"}  return "y" = %1)", Iota(4)), ElementsAre(2, 3, 2));
}

TEST(Movement, IndicesOutsideReadNothing) {
  const std::string constant = "%1 = Constant() {value = i64[3]{0, 3, -4}}\n";
  EXPECT_THAT(Result("[3]", constant + R"(%2 = Gather(%0, %1) {axis = 0}  return "y" = %2)", Iota(3)),
              ElementsAre(0, IsNan(), IsNan()));
  EXPECT_THAT(Result("[3]", constant + R"(%2 = GatherElements(%0, %1) {axis = 0}  return "y" = %2)", Iota(3)),
              ElementsAre(0, IsNan(), IsNan()));
  const std::string updates = "%1 = Constant() {value = i64[2]{1, 7}}\n%2 = Constant() {value = f32[2]{5, 6}}\n";
  EXPECT_THAT(Result("[3]", updates + R"(%3 = ScatterElements(%0, %1, %2) {axis = 0}  return "y" = %3)", Iota(3)),
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
