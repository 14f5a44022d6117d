#include "client/comparison/other_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/model_session.h"
#include "graph/text.h"
#include "onnx/model_builder.h"
#include "runtime/measure.h"

namespace mendel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// y = Relu(2 x + 1), with names for the two values between.
ModelBuilder Affine(const std::string& scaled, const std::string& output) {
  ModelBuilder model;
  model.Input("x", {"2", "3"}).Output(output);
  model.Initializer("two", Tensor::Filled({DType::kF32, {3}}, 2));
  model.Initializer("one", Tensor::Filled({DType::kF32, {3}}, 1));
  model.Node("Mul", {"x", "two"}, {scaled});
  model.Node("Add", {scaled, "one"}, {"shifted"});
  model.Node("Relu", {"shifted"}, {output});
  return model;
}

ImportResult ImportWithValues(ModelBuilder model) {
  ImportOptions options;
  options.every_value = true;
  auto imported = ImportOnnxBytes(model.model().SerializeAsString(), "", options);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return *std::move(imported);
}

ComparedModel Compared(ModelBuilder builder) {
  ComparedModel model;
  model.imported = ImportWithValues(std::move(builder));
  model.outputs = 1;
  model.layers = true;
  model.inputs["x"] = RandomInputs(model.imported.graph, 1)[0];
  return model;
}

std::vector<std::string> NamesOf(const std::vector<SideValue>& values) {
  std::vector<std::string> names;
  for (const SideValue& value : values) names.push_back(value.name);
  return names;
}

TEST(OtherSide, EveryValueOfTheModelIsAnOutput) {
  const ImportResult imported = ImportWithValues(Affine("scaled", "y"));
  std::vector<std::string> names;
  for (const GraphOutput& output : imported.graph.outputs()) names.push_back(output.name);
  EXPECT_THAT(names, ElementsAre("y", "scaled", "shifted"));
}

TEST(OtherSide, ModelsArePairedByNames) {
  const ComparedModel model = Compared(Affine("scaled", "y"));
  const auto side = ValuesOfModel(model, ImportWithValues(Affine("doubled", "y")), 1, {});
  ASSERT_TRUE(side.ok()) << side.status();
  EXPECT_THAT(NamesOf(side->values), ElementsAre("y", "shifted"));
  EXPECT_THAT(side->notes, ElementsAre());
}

TEST(OtherSide, OutputsWithoutACommonNameArePairedByPositionAndThatIsSaid) {
  const ComparedModel model = Compared(Affine("scaled", "y"));
  const auto side = ValuesOfModel(model, ImportWithValues(Affine("scaled", "z")), 1, {});
  ASSERT_TRUE(side.ok()) << side.status();
  EXPECT_EQ(side->values[0].name, "y");
  EXPECT_EQ(side->values[0].counterpart, "z");
  EXPECT_THAT(side->notes, ElementsAre(HasSubstr("by position")));
}

TEST(OtherSide, ValuesOfAPlanArePairedByWhatTheyCompute) {
  const ComparedModel model = Compared(Affine("scaled", "y"));
  Plan plan = *BaselinePlan(model.imported);
  // The same function by another way: `shifted` is there, `scaled` is not.
  plan.graph = *ParseGraph(R"(graph "g" {
    %0 = Input() {name = "x", shape = [2, 3]}
    %1 = Constant() {value = f32[]{0.5}}
    %2 = Constant() {value = f32[]{2}}
    %3 = Add(%0, %1)
    %4 = Mul(%3, %2)
    %5 = Relu(%4)
    return "y" = %5
  })");
  const auto side = ValuesOfPlan(model, plan, {}, 7);
  ASSERT_TRUE(side.ok()) << side.status();
  EXPECT_THAT(NamesOf(side->values), UnorderedElementsAre("y", "shifted"));
  const SideValue& shifted = side->values[1];
  for (int64_t k = 0; k < 6; ++k)
    EXPECT_NEAR(shifted.value.DoubleAt(k), 2 * model.inputs.at("x").DoubleAt(k) + 1, 1e-5);
}

TEST(OtherSide, NodesKeepTheirMeaningUnderNewNumbers) {
  const Graph graph = *ParseGraph(R"(graph "g" {
    %0 = Input() {name = "x", shape = [2]}
    %1 = Relu(%0)
    %2 = Neg(%0)
    %3 = Exp(%2)
    return "y" = %1, "z" = %3
  })");
  const auto rewired = WithOutputs(graph, {{"middle", {2, 0}}});
  ASSERT_TRUE(rewired.ok()) << rewired.status();
  EXPECT_EQ(rewired->graph.nodes().size(), 2u);
  EXPECT_THAT(rewired->nodes, UnorderedElementsAre(std::pair(0, 0), std::pair(2, 1)));
  EXPECT_EQ(rewired->graph.node(1).op->name, "Neg");
}

}  // namespace
}  // namespace mendel
