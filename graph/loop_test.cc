#include "graph/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/restrict.h"
#include "graph/sample_node.h"
#include "graph/text.h"

namespace mendel {
namespace {

using testing::HasSubstr;

/// The node as a graph whose inputs are all open.
Graph GraphOf(const SampledNode& node) {
  GraphBuilder builder;
  std::vector<ValueId> inputs;
  for (const TensorType& type : node.inputs)
    inputs.push_back(builder.Input(Cat("x", inputs.size()), type));
  const int32_t id = builder.AddNode(node.op->name, inputs, node.attrs).value();
  for (size_t k = 0; k < node.outputs.size(); ++k)
    builder.Output(Cat("y", k), {id, static_cast<int32_t>(k)});
  return builder.Build().value();
}

TEST(Loop, MeansItsStepsOneAfterTheOther) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    const SampledNode node = SampleNode(GetOp("Loop"), rng).value();
    SCOPED_TRACE(DescribeNode(node));
    const Graph graph = GraphOf(node);
    std::vector<int32_t> origins;
    const auto unrolled = UnrollLoops(graph, &origins);
    ASSERT_TRUE(unrolled.ok()) << unrolled.status();
    EXPECT_TRUE(HasLoop(graph));
    EXPECT_FALSE(HasLoop(*unrolled));
    ASSERT_EQ(origins.size(), unrolled->nodes().size());
    for (size_t i = 0; i < origins.size(); ++i) {
      const Node& origin = graph.node(origins[i]);
      EXPECT_EQ(origin.op->name, IsInput(unrolled->nodes()[i]) ? "Input" : "Loop");
    }
    ASSERT_TRUE(CheckGraph(*unrolled).ok());
    const std::vector<HostValue> inputs = SampleInputs(node, rng);
    const auto got = Evaluate(graph, inputs), want = Evaluate(*unrolled, inputs);
    ASSERT_TRUE(got.ok() && want.ok()) << got.status() << want.status();
    for (size_t k = 0; k < want->size(); ++k) EXPECT_EQ((*got)[k].scalars, (*want)[k].scalars);
  }
}

/// Slices of scanned outputs need no later step, and are those of the whole loop.
TEST(Loop, ComputesNoStepAfterTheLastWantedOne) {
  int shortened = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Rng rng(seed);
    const SampledNode node = SampleNode(GetOp("Loop"), rng).value();
    const int64_t steps = node.attrs.Int("steps");
    const size_t carried = static_cast<size_t>(node.attrs.Int("carried"));
    if (node.outputs.size() == carried || steps < 2) continue;
    SCOPED_TRACE(Cat("seed ", seed, "\n", DescribeNode(node)));
    const Graph graph = GraphOf(node);
    std::vector<OutputBox> wanted;
    for (size_t k = carried; k < node.outputs.size(); ++k) {
      Box box = Box::Whole(node.outputs[k].shape);
      box.begin[0] = rng.Between(0, steps - 1);
      box.end[0] = rng.Between(box.begin[0] + 1, steps);
      wanted.push_back({static_cast<int>(k), box});
    }
    const auto cut = RestrictToBoxes(graph, wanted);
    ASSERT_TRUE(cut.ok()) << cut.status();
    for (const Node& inner : cut->nodes())
      shortened += inner.op->name == "Loop" && inner.attrs.Int("steps") < steps ? 1 : 0;
    const std::vector<HostValue> inputs = SampleInputs(node, rng);
    const auto all = Evaluate(graph, inputs), some = Evaluate(*cut, inputs);
    ASSERT_TRUE(all.ok() && some.ok()) << all.status() << some.status();
    for (size_t w = 0; w < wanted.size(); ++w) {
      const std::vector<double>& whole = (*all)[static_cast<size_t>(wanted[w].output)].scalars;
      const int64_t slice = static_cast<int64_t>(whole.size()) / steps;
      const std::vector<double> expected(whole.begin() + wanted[w].box.begin[0] * slice,
                                         whole.begin() + wanted[w].box.end[0] * slice);
      EXPECT_EQ((*some)[w].scalars, expected);
    }
  }
  EXPECT_GT(shortened, 50);
}

TEST(Loop, UnrollsNoMoreStepsThanAllowed) {
  Rng rng(5);
  SampledNode node = SampleNode(GetOp("Loop"), rng).value();
  const int64_t steps = node.attrs.Int("steps");
  EXPECT_TRUE(UnrollLoops(GraphOf(node), nullptr, steps).ok());
  EXPECT_EQ(UnrollLoops(GraphOf(node), nullptr, steps - 1).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(Loop, TextComesBack) {
  Rng rng(5);
  const Graph graph = GraphOf(SampleNode(GetOp("Loop"), rng).value());
  const auto again = ParseGraph(PrintGraph(graph));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(PrintGraph(*again), PrintGraph(graph));
}

/// The error of a loop over `body`, with one carried value and one scanned input of 3 slices.
std::string Refusal(const std::string& body, int64_t steps = 3) {
  GraphBuilder builder;
  const ValueId h = builder.Input("h", {DType::kF32, {2}});
  const ValueId x = builder.Input("x", {DType::kF32, {3, 2}});
  const auto loop = builder.AddNode("Loop", {h, x},
                                    {{"body", Cat("graph \"\" {\n", body, "\n}")},
                                     {"carried", int64_t{1}},
                                     {"scanned", int64_t{1}},
                                     {"steps", steps}});
  return loop.ok() ? "" : std::string(loop.status().message());
}

const char kInputs[] = R"(%0 = Input() {name = "a", shape = [2]}
  %1 = Input() {name = "b", shape = [2]}
)";

TEST(Loop, RefusesWhatIsNoBody) {
  const auto refusal = [](const std::string& rest, int64_t steps = 3) {
    return Refusal(kInputs + rest, steps);
  };
  const std::string good = "%2 = Add(%0, %1)\n return \"p\" = %2";
  EXPECT_EQ(refusal(good), "");
  EXPECT_THAT(refusal(good, 2), HasSubstr("has not 2 slices"));
  EXPECT_THAT(refusal(good, 0), HasSubstr("1 to 100000 steps"));
  EXPECT_THAT(refusal(good, kMaxLoopSteps + 1), HasSubstr("1 to 100000 steps"));
  EXPECT_THAT(refusal("%2 = Div(%0, %1)\n return \"p\" = %2"), HasSubstr("operator Div"));
  EXPECT_THAT(refusal("%2 = Equal(%0, %1)\n return \"p\" = %2"), HasSubstr("one float type"));
  EXPECT_THAT(refusal("%2 = Constant() {symbol = \"w\", value = f32[2]{1, 2}}\n"
                      "%3 = Add(%0, %2)\n return \"p\" = %3"),
              HasSubstr("no weights of its own"));
  EXPECT_THAT(refusal("%2 = Constant() {value = f32[]{inf}}\n"
                      "%3 = Add(%0, %2)\n return \"p\" = %3"),
              HasSubstr("finite constants"));
  EXPECT_THAT(refusal("%2 = ReduceSum(%0) {axes = [0], keepdims = 1}\n return \"p\" = %2"),
              HasSubstr("carried value 0 becomes f32[1]"));
  EXPECT_THAT(Refusal("%0 = Input() {name = \"a\", shape = [2]}\n return \"p\" = %0"),
              HasSubstr("has 1 inputs, not 2"));
  EXPECT_THAT(Refusal("nonsense"), HasSubstr("expected"));
}

TEST(Loop, RefusesALoopWithinALoop) {
  GraphBuilder builder;
  const ValueId a = builder.Input("x0", {DType::kF32, {2}});
  const ValueId b = builder.Input("x1", {DType::kF32, {2}});
  const std::string inner = Cat("graph \"\" {", kInputs, "%2 = Add(%0, %1)\n return \"p\" = %2}");
  const ValueId loop = builder
                           .Add("Loop", {a, b},
                                {{"body", inner},
                                 {"carried", int64_t{1}},
                                 {"scanned", int64_t{0}},
                                 {"steps", int64_t{2}}})
                           .value();
  builder.Output("p", loop);
  const Graph body = builder.Build().value();
  EXPECT_THAT(std::string(CheckLoopBody(body).message()), HasSubstr("operator Loop"));
  GraphBuilder outer;
  const ValueId h = outer.Input("h", {DType::kF32, {2}});
  const auto nested = outer.Add("Loop", {h, h},
                                {{"body", PrintLoopBody(body)},
                                 {"carried", int64_t{1}},
                                 {"scanned", int64_t{0}},
                                 {"steps", int64_t{2}}});
  EXPECT_THAT(std::string(nested.status().message()), HasSubstr("cannot have operator Loop"));
}

TEST(Loop, TidyBodiesHaveNoInputsWithoutReaders) {
  GraphBuilder builder;
  const TensorType type{DType::kF32, {2}};
  const ValueId h = builder.Input("h", type);
  builder.Input("scanned", type);
  builder.Input("unused", type);
  const ValueId w = builder.Input("w", type);
  builder.Output("", builder.Add("Mul", {h, w}).value());
  std::vector<size_t> kept;
  const Graph tidy = TidyLoopBody(builder.Build().value(), 2, kept).value();
  EXPECT_THAT(kept, testing::ElementsAre(0, 1, 3));
  EXPECT_EQ(InputName(tidy.node(tidy.inputs()[2])), "x2");
}

}  // namespace
}  // namespace mendel
