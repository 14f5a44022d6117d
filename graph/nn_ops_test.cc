// Numbers of the operators of neural networks against ONNX's reference evaluator. Random settings
// against each operator's laws are in ops_conformance_test.cc.

#include <gtest/gtest.h>

#include <cmath>

#include "base/status.h"
#include "graph/nn_ops_cases.h"
#include "graph/sample_node.h"

namespace mendel {
namespace {

/// Element k of input `input`.
double Ramp(size_t k, size_t input) {
  return (static_cast<double>((k * 7 + 3 + input * 5) % 11) - 5) / 2;
}

HostValue Floats(Shape shape, std::vector<double> values) {
  HostValue value;
  value.type = {DType::kF32, std::move(shape)};
  value.scalars = std::move(values);
  return value;
}

HostValue RampInput(const NnOpCase& c, size_t input) {
  HostValue value = Floats(c.inputs[input], {});
  for (size_t k = 0; k < static_cast<size_t>(NumElements(value.type)); ++k)
    value.scalars.push_back(Ramp(k, input));
  if (c.op == "BatchNormalization" && input == 4) {  // a variance
    for (double& element : value.scalars) element = std::abs(element);
  }
  return value;
}

absl::StatusOr<HostValue> Apply(const std::string& op, const std::vector<HostValue>& inputs,
                                const Attributes& attrs) {
  std::vector<TensorType> types;
  std::vector<const HostValue*> operands;
  for (const HostValue& input : inputs) {
    types.push_back(input.type);
    operands.push_back(&input);
  }
  MENDEL_ASSIGN_OR_RETURN(const SampledNode node, MakeNode(GetOp(op), types, attrs));
  return EvaluateNode(*node.op, node.view(), operands)[0];
}

TEST(NnOpsTest, ValuesAreThoseOfOnnxsReferenceEvaluator) {
  std::vector<NnOpCase> cases = PlainNnOpCases();
  for (NnOpCase& c : ResizeCases()) cases.push_back(std::move(c));
  for (const NnOpCase& c : cases) {
    std::vector<HostValue> inputs;
    for (size_t k = 0; k < c.inputs.size(); ++k) inputs.push_back(RampInput(c, k));
    const absl::StatusOr<HostValue> result = Apply(c.op, inputs, c.attrs);
    ASSERT_TRUE(result.ok()) << c.op << " " << c.label << ": " << result.status();
    ASSERT_EQ(result->type.shape, c.shape) << c.op << " " << c.label;
    // The evaluator works out the shares of Resize and the moments of some normalizations in single
    // precision.
    for (size_t k = 0; k < c.values.size(); ++k) {
      EXPECT_NEAR(result->At(static_cast<int64_t>(k)), c.values[k],
                  2e-6 * std::max(1.0, std::abs(c.values[k])))
          << c.op << " " << c.label << " element " << k;
    }
  }
}

TEST(NnOpsTest, HalfPixelForNearestNeighborsIsNotShiftedBack) {
  const HostValue x = Floats({4}, {10, 20, 30, 40});
  const absl::StatusOr<HostValue> y =
      Apply("Resize", {x},
            {{"output_sizes", Ints{2}},
             {"scales", std::vector<double>{0.5}},
             {"coordinate_transformation_mode", std::string("tf_half_pixel_for_nn")},
             {"nearest_mode", std::string("floor")}});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->scalars, (std::vector<double>{20, 40}));
}

TEST(NnOpsTest, SoftmaxOfLargeNumbersIsFinite) {
  const HostValue x = Floats({3}, {1000, 1000, -3.4e38});
  const absl::StatusOr<HostValue> y = Apply("Softmax", {x}, {{"axis", int64_t{0}}});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->scalars, (std::vector<double>{0.5, 0.5, 0}));
}

TEST(NnOpsTest, WindowWhollyInPaddingIsMinusInfinity) {
  const HostValue x = Floats({1, 1, 1}, {3});
  const Attributes attrs = {{"kernel_shape", Ints{1}},
                            {"strides", Ints{1}},
                            {"dilations", Ints{1}},
                            {"pads", Ints{1, 0}}};
  const absl::StatusOr<HostValue> y = Apply("MaxPool", {x}, attrs);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->scalars, (std::vector<double>{-INFINITY, 3}));
}

TEST(NnOpsTest, RefusalsNameWhatIsWrong) {
  const HostValue x = Floats({2, 2}, {1, 2, 3, 4});
  const auto message = [&](const std::string& op, const std::vector<HostValue>& inputs,
                           const Attributes& attrs) {
    return std::string(Apply(op, inputs, attrs).status().message());
  };
  EXPECT_NE(message("ReduceSum", {x}, {{"axes", Ints{}}}).find("axes must not be empty"),
            std::string::npos);
  EXPECT_NE(message("ReduceSum", {x}, {{"axes", Ints{1, 0}}}).find("increasing"),
            std::string::npos);
  EXPECT_NE(message("Softmax", {x}, {{"axis", int64_t{2}}}).find("axis 2"), std::string::npos);
  EXPECT_NE(message("Einsum", {x, x}, {{"equation", std::string("ij,jk->il")}}).find("'l'"),
            std::string::npos);
  EXPECT_NE(message("LRN", {x}, {{"size", int64_t{0}}}).find("size must be positive"),
            std::string::npos);
}

}  // namespace
}  // namespace mendel
