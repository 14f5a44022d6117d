#include "optimizer/normalize.h"

#include <gtest/gtest.h>

#include "graph/evaluate.h"
#include "graph/text.h"

namespace mendel {
namespace {

TEST(Normalize, ViewsOfWeightsStay) {
  // Merged convolutions leave such expressions behind; a backend folds them when it loads.
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {2, 3}});
  const ValueId w = builder.Constant(
      Tensor::FromDoubles({DType::kF32, {6}}, std::vector<double>{1, 2, 3, 4, 5, 6}), "w");
  const ValueId first = *builder.Add("Reshape", {w}, {{"shape", Shape{3, 2}}});
  const ValueId second = *builder.Add("Reshape", {first}, {{"shape", Shape{2, 3}}});
  builder.Output("y", *builder.Add("Add", {x, second}));
  const Graph graph = *builder.Build();
  std::set<std::string> faults;
  const auto normal = Normalize(graph, {}, faults);
  ASSERT_TRUE(normal.ok()) << normal.status();
  EXPECT_TRUE(faults.empty());
  const std::vector<HostValue> inputs = {
      HostValue::FromTensor(Tensor::Filled({DType::kF32, {2, 3}}, 1))};
  EXPECT_EQ((*Evaluate(*normal, inputs))[0].scalars, (*Evaluate(graph, inputs))[0].scalars);
}

std::vector<Match> EveryRelu(const Graph& graph, int32_t node, const Predictor&) {
  return graph.node(node).op->name == "Relu" ? std::vector<Match>{{{node}, {}}}
                                             : std::vector<Match>{};
}

/// A rule of the normalizer that replaces Relu by `apply`.
Rule FalseRule(std::string_view name,
               absl::StatusOr<Graph> (*apply)(const Graph&, const Match&, const Predictor&)) {
  Rule rule;
  rule.name = name;
  rule.stage = Stage::kNormalize;
  rule.match = &EveryRelu;
  rule.apply = apply;
  return rule;
}

absl::StatusOr<Graph> WithoutRelu(const Graph& subprogram, const Match&, const Predictor&) {
  GraphBuilder builder;
  const ValueId x = builder.Input("in0", subprogram.node(subprogram.inputs()[0]).outputs[0]);
  builder.Output("out0",
                 *builder.Add("Mul", {x, builder.Constant(Tensor::Filled({DType::kF32, {}}, 1))}));
  return builder.Build();
}

absl::StatusOr<Graph> WithoutOutput(const Graph& subprogram, const Match&, const Predictor&) {
  GraphBuilder builder;
  builder.Input("in0", subprogram.node(subprogram.inputs()[0]).outputs[0]);
  return builder.Build();
}

TEST(Normalize, PastTheDeadlineTheGraphStaysAsItIs) {
  const Graph graph = *ParseGraph(R"(graph "g" {
  %0 = Input() {name = "x", shape = [2, 3]}
  %1 = Transpose(%0) {perm = [1, 0]}
  %2 = Transpose(%1) {perm = [1, 0]}
  return "y" = %2
})");
  std::set<std::string> faults;
  std::atomic<bool> stop = true;
  const auto late = Normalize(graph, {}, faults, Deadline::Never().StoppedBy(&stop));
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(late->nodes().size(), 3u);
  EXPECT_EQ(Normalize(graph, {}, faults)->nodes().size(), 1u);
}

TEST(Normalize, AFalseRuleCostsItsOwnRewritesAndIsNamed) {
  const Graph graph = *ParseGraph(R"(graph "g" {
  %0 = Input() {name = "x", shape = [2, 3]}
  %1 = Relu(%0)
  %2 = Transpose(%1) {perm = [1, 0]}
  %3 = Transpose(%2) {perm = [1, 0]}
  %4 = Relu(%3)
  return "y" = %4
})");
  const Rule liar = FalseRule("liar", &WithoutRelu), broken = FalseRule("broken", &WithoutOutput);
  const Rule* const rules[] = {&liar, &broken, FindRule("cancel_views")};
  std::set<std::string> faults;
  const auto normal = NormalizeBy(rules, graph, faults);
  ASSERT_TRUE(normal.ok()) << normal.status();
  const Graph want = *ParseGraph(R"(graph "g" {
  %0 = Input() {name = "x", shape = [2, 3]}
  %1 = Relu(%0)
  %2 = Relu(%1)
  return "y" = %2
})");
  EXPECT_EQ(PrintGraph(*normal, {.node_names = false}), PrintGraph(want, {.node_names = false}));
  ASSERT_EQ(faults.size(), 2u);  // once each, though they match twice
  EXPECT_NE(faults.begin()->find("rule broken: "), std::string::npos) << *faults.begin();
  EXPECT_NE(faults.rbegin()->find("rule liar: "), std::string::npos) << *faults.rbegin();
}

}  // namespace
}  // namespace mendel
