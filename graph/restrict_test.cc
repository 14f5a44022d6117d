#include "graph/restrict.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph/evaluate.h"
#include "graph/random_graph.h"
#include "graph/text.h"

namespace mendel {
namespace {

Graph Parse(const std::string& text) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

Box RandomBox(Rng& rng, const Shape& shape) {
  Box box = Box::Whole(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (rng.Flip(0.2)) continue;
    box.begin[d] = rng.Between(0, shape[d] - 1);
    box.end[d] = rng.Flip() ? box.begin[d] + 1 : rng.Between(box.begin[d] + 1, shape[d]);
  }
  return box;
}

/// Elements of `whole` in `box`, row-major.
std::vector<double> Cut(const HostValue& whole, const Box& box) {
  std::vector<double> values;
  const Shape extents = box.Extents();
  std::vector<int64_t> at(extents.size(), 0);
  do {
    std::vector<int64_t> position = box.begin;
    for (size_t d = 0; d < at.size(); ++d) position[d] += at[d];
    values.push_back(whole.At(FlatIndex(whole.type.shape, position)));
  } while (NextIndex(extents, at));
  return values;
}

TEST(Restrict, EqualsTheBoxOfTheWholeOnRandomGraphs) {
  int64_t compared = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Rng rng(seed);
    const Graph graph = RandomGraph(rng, static_cast<int>(rng.Between(1, 10)));
    std::vector<OutputBox> boxes;
    for (int64_t k = rng.Between(1, 3); k > 0; --k) {
      const int output = static_cast<int>(rng.Below(graph.outputs().size()));
      boxes.push_back(
          {output,
           RandomBox(rng, graph.type(graph.outputs()[static_cast<size_t>(output)].value).shape)});
    }
    const auto restricted = RestrictToBoxes(graph, boxes);
    ASSERT_TRUE(restricted.ok()) << "seed " << seed << ": " << restricted.status() << "\n"
                                 << PrintGraph(graph);
    ASSERT_TRUE(CheckGraph(*restricted).ok()) << "seed " << seed;
    const std::vector<HostValue> inputs = RandomInputs(rng, graph);
    const auto whole = Evaluate(graph, inputs);
    const auto part = Evaluate(*restricted, inputs);
    ASSERT_TRUE(whole.ok() && part.ok()) << "seed " << seed;
    for (size_t k = 0; k < boxes.size(); ++k) {
      const std::vector<double> expected =
          Cut((*whole)[static_cast<size_t>(boxes[k].output)], boxes[k].box);
      ASSERT_EQ((*part)[k].type.shape, boxes[k].box.Extents());
      for (size_t i = 0; i < expected.size(); ++i, ++compared) {
        const double value = (*part)[k].At(static_cast<int64_t>(i));
        // A restricted product may sum in another order.
        ASSERT_TRUE(value == expected[i] ||
                    std::abs(value - expected[i]) <= 1e-9 * (1 + std::abs(expected[i])) ||
                    (std::isnan(value) && std::isnan(expected[i])))
            << "seed " << seed << " box " << BoxString(boxes[k].box) << " element " << i << ": "
            << value << " for " << expected[i] << "\n"
            << PrintGraph(graph) << PrintGraph(*restricted);
      }
    }
  }
  std::printf("[ seeds 1..2000, %lld elements compared ]\n", static_cast<long long>(compared));
}

TEST(Restrict, ReadsOnlyTheRowsThatTheBoxNeeds) {
  const Graph graph = Parse(R"(graph "g" {
    %0 = Input() {name = "x", shape = [1, 2, 64, 8]}
    %1 = Input() {name = "w", shape = [4, 2, 3, 3]}
    %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
    %3 = Relu(%2)
    return "y" = %3
  })");
  const auto part = RestrictToBox(graph, 0, {{0, 1, 10, 0}, {1, 2, 12, 8}});
  ASSERT_TRUE(part.ok()) << part.status();
  double bytes = 0;
  for (const Node& node : part->nodes()) {
    if (node.op->name == "Slice") bytes += static_cast<double>(ByteSize(node.outputs[0]));
  }
  EXPECT_EQ(bytes, 4 * (2 * 4 * 8 + 2 * 9)) << PrintGraph(*part);
}

TEST(ComputeNeeded, IsTheSameProgramOnRandomGraphs) {
  int smaller = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const Graph graph = RandomGraph(rng, static_cast<int>(rng.Between(2, 12)));
    const auto needed = ComputeNeeded(graph);
    ASSERT_TRUE(needed.ok()) << "seed " << seed << ": " << needed.status();
    smaller += PrintGraph(*needed) != PrintGraph(graph) ? 1 : 0;
    ASSERT_EQ(needed->outputs().size(), graph.outputs().size());
    const std::vector<HostValue> inputs = RandomInputs(rng, graph);
    const auto whole = Evaluate(graph, inputs);
    const auto part = Evaluate(*needed, inputs);
    ASSERT_TRUE(whole.ok() && part.ok()) << "seed " << seed;
    for (size_t k = 0; k < whole->size(); ++k) {
      EXPECT_EQ(needed->outputs()[k].name, graph.outputs()[k].name);
      ASSERT_EQ((*part)[k].type, (*whole)[k].type) << "seed " << seed;
      for (int64_t i = 0; i < NumElements((*whole)[k].type); ++i) {
        const double x = (*whole)[k].At(i), y = (*part)[k].At(i);
        ASSERT_TRUE(x == y || std::abs(x - y) <= 1e-9 * (1 + std::abs(x)) ||
                    (std::isnan(x) && std::isnan(y)))
            << "seed " << seed << PrintGraph(graph) << PrintGraph(*needed);
      }
    }
  }
  EXPECT_GT(smaller, 0);
}

TEST(ComputeNeeded, CutsOperandsInPlaceOfResults) {
  const Graph graph = Parse(R"(graph "g" {
    %0 = Input() {name = "x", shape = [64, 8]}
    %1 = Input() {name = "w", shape = [8, 8]}
    %2 = MatMul(%0, %1)
    %3 = Relu(%2)
    %4 = Slice(%3) {starts = [63, 0], ends = [64, 8], steps = [1, 1]}
    return "y" = %4
  })");
  const auto needed = ComputeNeeded(graph);
  ASSERT_TRUE(needed.ok()) << needed.status();
  for (const Node& node : needed->nodes()) {
    if (node.op->name == "MatMul") {
      EXPECT_EQ(node.outputs[0].shape, Shape({1, 8})) << PrintGraph(*needed);
    }
  }
}

TEST(Restrict, CutsThroughMergedImages) {
  const Graph graph = Parse(R"(graph "g" {
    %0 = Input() {name = "x", shape = [4, 6, 3]}
    %1 = Relu(%0)
    %2 = Reshape(%1) {shape = [24, 3]}
    return "y" = %2
  })");
  const auto part = RestrictToBox(graph, 0, {{5, 1}, {7, 2}});
  ASSERT_TRUE(part.ok()) << part.status();
  for (const Node& node : part->nodes()) {
    if (node.op->name == "Relu") {
      EXPECT_EQ(NumElements(node.outputs[0]), 1);
    }
  }
}

TEST(Restrict, LeavesOutUnreadPiecesOfConcatAndPatch) {
  const Graph graph = Parse(R"(graph "g" {
    %0 = Input() {name = "x", shape = [4]}
    %1 = Relu(%0)
    %2 = Sigmoid(%0)
    %3 = Concat(%1, %2) {axis = 0}
    return "y" = %3
  })");
  const auto part = RestrictToBox(graph, 0, {{5}, {6}});
  ASSERT_TRUE(part.ok()) << part.status();
  for (const Node& node : part->nodes()) EXPECT_NE(node.op->name, "Relu") << PrintGraph(*part);
}

TEST(Restrict, RefusesEmptyAndForeignBoxes) {
  const Graph graph = Parse(R"(graph "g" {
    %0 = Input() {name = "x", shape = [4]}
    return "y" = %0
  })");
  EXPECT_EQ(RestrictToBox(graph, 0, {{2}, {2}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RestrictToBox(graph, 0, {{2}, {5}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RestrictToBox(graph, 0, {{2, 0}, {3, 1}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RestrictToBox(graph, 1, {{2}, {3}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mendel
