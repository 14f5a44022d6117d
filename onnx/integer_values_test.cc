// Integers of a model stay integers: also those that no double holds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "graph/evaluate.h"
#include "graph/text.h"
#include "onnx/import_case.h"

namespace mendel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Builder = ModelBuilder;

constexpr int64_t kOdd = (int64_t{1} << 53) + 1;
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

/// The integers of output 0 for the input `x` of the model, if it has one.
std::vector<int64_t> Computed(const Builder& model, const std::vector<Tensor>& x = {}) {
  const auto imported = Import(model);
  EXPECT_TRUE(imported.ok()) << imported.status();
  if (!imported.ok()) return {};
  std::vector<HostValue> inputs;
  for (const Tensor& input : x) inputs.push_back(HostValue::FromTensor(input));
  const auto outputs = Evaluate(imported->graph, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? (*outputs)[0].integers : std::vector<int64_t>();
}

Builder PadModel(const std::vector<std::string>& shape, const std::vector<int64_t>& pads,
                 int64_t value, const std::string& mode = "constant") {
  Builder model(18);
  model.Input("x", shape, DType::kI64).Output("y").Ints("value", {value});
  model.Initializer("pads",
                    Tensor::FromInts({DType::kI64, {static_cast<int64_t>(pads.size())}}, pads));
  Builder::Set(model.Node("Pad", {"x", "pads", "value"}, {"y"}), "mode", mode);
  return model;
}

TEST(IntegerValues, PadsOfAnyInteger) {
  const Tensor x = Tensor::Ints({7});
  for (const int64_t value : {int64_t{5}, kOdd - 1, kOdd, -kOdd, kLargest, kLargest - 1, kLeast}) {
    EXPECT_THAT(Computed(PadModel({"1"}, {1, 2}, value), {x}), ElementsAre(value, 7, value, value));
  }
  const Tensor matrix = Tensor::FromInts({DType::kI64, {1, 2}}, std::vector<int64_t>{7, 8});
  EXPECT_THAT(Computed(PadModel({"1", "2"}, {1, -1, 0, 1}, kOdd), {matrix}),
              ElementsAre(kOdd, kOdd, 8, kOdd));
}

TEST(IntegerValues, PadsThatDoublesHoldStayPads) {
  EXPECT_THAT(Text(PadModel({"1"}, {1, 2}, kOdd - 1)), HasSubstr("Pad("));
  EXPECT_THAT(Text(PadModel({"1"}, {1, 2}, kOdd, "edge")), HasSubstr("Pad("));
  EXPECT_THAT(Text(PadModel({"1"}, {1, 2}, kOdd)), testing::Not(HasSubstr("Pad(")));
}

Builder RangeModel(int64_t start, int64_t limit, int64_t step) {
  Builder model(18);
  for (const auto& [name, value] : {std::pair("start", start), {"limit", limit}, {"step", step}})
    model.Initializer(name, Tensor::Ints({value}).Reshaped({}));
  model.Output("y").Node("Range", {"start", "limit", "step"}, {"y"});
  return model;
}

TEST(IntegerValues, RangesCountIntegers) {
  EXPECT_THAT(Computed(RangeModel(kOdd - 2, kOdd + 10, 3)),
              ElementsAre(kOdd - 2, kOdd + 1, kOdd + 4, kOdd + 7));
  EXPECT_THAT(Computed(RangeModel(kOdd, kOdd - 3, -2)), ElementsAre(kOdd, kOdd - 2));
  EXPECT_THAT(Computed(RangeModel(kLeast, kLargest, kLargest)),
              ElementsAre(kLeast, -1, kLargest - 1));
  EXPECT_THAT(Computed(RangeModel(kLargest, kLeast, kLeast)), ElementsAre(kLargest, -1));
  EXPECT_THAT(Computed(RangeModel(kLargest, kLargest - 1, 1)), ElementsAre());
  EXPECT_THAT(Computed(RangeModel(3, 3, -1)), ElementsAre());
  ExpectRefused(RangeModel(kLeast, kLargest, 1), absl::StatusCode::kUnimplemented,
                "more than 2^22 elements");
  ExpectRefused(RangeModel(kLargest, kLeast, -1), absl::StatusCode::kUnimplemented,
                "more than 2^22 elements");
}

TEST(IntegerValues, OtherFillsKeepThem) {
  Builder filled(18);
  filled.Ints("shape", {2}).Output("y");
  auto& attribute = *filled.Node("ConstantOfShape", {"shape"}, {"y"}).add_attribute();
  attribute.set_name("value");
  attribute.set_type(onnx::AttributeProto::TENSOR);
  Builder::SetTensor(Tensor::Ints({kOdd}), "", *attribute.mutable_t());
  EXPECT_THAT(Computed(filled), ElementsAre(kOdd, kOdd));

  Builder hot(18);
  hot.Ints("at", {1}).Ints("depth", {2}).Ints("values", {kOdd, kLargest}).Output("y");
  hot.Node("OneHot", {"at", "depth", "values"}, {"y"});
  EXPECT_THAT(Computed(hot), ElementsAre(kOdd, kLargest));

  Builder clip(18);
  clip.Input("x", {"2"}, DType::kI64).Output("y");
  clip.Initializer("low", Tensor::Ints({kOdd}).Reshaped({}));
  clip.Initializer("high", Tensor::Ints({kLargest - 1}).Reshaped({}));
  clip.Node("Clip", {"x", "low", "high"}, {"y"});
  EXPECT_THAT(Computed(clip, {Tensor::Ints({kOdd - 1, kLargest})}),
              ElementsAre(kOdd, kLargest - 1));
}

Builder ShrinkModel(float bias, float lambd) {
  Builder model(18);
  auto& node = model.Input("x", {"6"}, DType::kI32).Output("y").Node("Shrink", {"x"}, {"y"});
  Builder::Set(node, "bias", bias);
  Builder::Set(node, "lambd", lambd);
  return model;
}

TEST(IntegerValues, FractionsOfAttributesAreNotCutOff) {
  const std::vector<int64_t> values = {-2, -1, 0, 1, 2, 3};
  const Tensor x = Tensor::FromInts({DType::kI32, {6}}, values);
  EXPECT_THAT(Computed(ShrinkModel(1, 1.5f), {x}), ElementsAre(-1, 0, 0, 0, 1, 2));
  EXPECT_THAT(Computed(ShrinkModel(1, -0.5f), {x}), ElementsAre(-1, 0, 1, 0, 1, 2));
  ExpectRefused(ShrinkModel(0.5f, 1), absl::StatusCode::kUnimplemented, "bias 0.5");

  Builder gemm(18);
  gemm.Input("x", {"1", "1"}, DType::kI32).Output("y");
  Builder::Set(gemm.Node("Gemm", {"x", "x"}, {"y"}), "alpha", 0.5f);
  ExpectRefused(gemm, absl::StatusCode::kUnimplemented, "integers times 0.5");

  Builder clip(6);
  clip.Input("x", {"1"}, DType::kI32).Output("y");
  Builder::Set(clip.Node("Clip", {"x"}, {"y"}), "max", 0.5f);
  ExpectRefused(clip, absl::StatusCode::kInvalidArgument, "bound 0.5 is no i32");

  Builder resize(13);
  resize.Input("x", {"2"}, DType::kI32).Output("y");
  resize.Initializer("roi", Floats({2}, {0, 2})).Initializer("scales", Floats({1}, {1}));
  auto& node = resize.Node("Resize", {"x", "roi", "scales"}, {"y"});
  Builder::Set(node, "coordinate_transformation_mode", std::string("tf_crop_and_resize"));
  Builder::Set(node, "extrapolation_value", 1.5f);
  ExpectRefused(resize, absl::StatusCode::kInvalidArgument, "extrapolation_value 1.5 is no i32");
}

/// Sums of f32 are whole numbers below 2^24: 300 products of codes may leave that, if the stored
/// weights are large.
TEST(IntegerValues, ConvolutionsLeaveF32WhereTheirWeightsAreLarge) {
  for (const auto& [weight, is_double] : {std::pair(2, false), {255, true}}) {
    Builder model;
    model.Input("x", {"1", "300", "1", "1"}, DType::kU8).Output("y");
    model.Initializer("w", Tensor::Filled({DType::kU8, {1, 300, 1, 1}}, weight));
    model.Node("ConvInteger", {"x", "w"}, {"y"});
    EXPECT_EQ(PrintGraph(Import(model)->graph).find("f64") != std::string::npos, is_double);
    EXPECT_THAT(Computed(model, {Tensor::Filled({DType::kU8, {1, 300, 1, 1}}, 255)}),
                ElementsAre(300 * 255 * weight));
  }
}

}  // namespace
}  // namespace mendel
