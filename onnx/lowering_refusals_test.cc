// Models that the importer refuses, by the operator and the reason.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "onnx/import.h"
#include "onnx/model_builder.h"

namespace mendel {
namespace {

using Builder = ModelBuilder;

Tensor Zeros(Shape shape) {
  const std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  return Tensor::FromDoubles({DType::kF32, std::move(shape)}, values);
}

TEST(Refusals, IntegerConvolutionsOfWeightsWithoutChannels) {
  for (const std::vector<std::string>& weights : {std::vector<std::string>{}, {"2"}, {"1", "3"}}) {
    Builder integer, linear;
    for (Builder* model : {&integer, &linear})
      model->Input("x", {"1", "1", "3", "3"}, DType::kU8)
          .Input("w", weights, DType::kU8)
          .Output("y");
    integer.Node("ConvInteger", {"x", "w"}, {"y"});
    linear.Initializer("scale", Tensor::Scalar(DType::kF32, 2))
        .Initializer("zero", Tensor::Scalar(DType::kU8, 10));
    linear.Node("QLinearConv", {"x", "scale", "zero", "w", "scale", "zero", "scale", "zero"},
                {"y"});
    for (Builder* model : {&integer, &linear}) {
      const absl::Status status = ImportOnnxBytes(model->Bytes(), "").status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(status.message(), testing::HasSubstr("needs 3 or more"));
    }
  }
}

TEST(Refusals, IntegerConvolutionsOfZeroPointsThatFitNoChannel) {
  Builder model;
  model.Input("x", {"1", "1", "3", "3"}, DType::kU8).Output("y");
  model.Input("w", {"3", "1", "2", "2"}, DType::kU8).Input("zeros", {"2"}, DType::kU8);
  model.Node("ConvInteger", {"x", "w", "", "zeros"}, {"y"});
  const absl::Status status = ImportOnnxBytes(model.Bytes(), "").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

TEST(Refusals, LoopsOfUnknownLength) {
  Builder model;
  model.Input("h", {"2"}).Input("go", {}, DType::kBool).Output("end");
  auto& loop = model.Node("Loop", {"", "go", "h"}, {"end"});
  auto& attribute = *loop.add_attribute();
  attribute.set_name("body");
  attribute.set_type(onnx::AttributeProto::GRAPH);
  const auto imported = ImportOnnxBytes(model.Bytes(), "");
  EXPECT_THAT(std::string(imported.status().message()),
              testing::HasSubstr("loops of unknown length are not supported"));
}

TEST(Refusals, RecurrenceThatClips) {
  Builder model;
  model.Input("x", {"3", "1", "2"}).Output("y");
  model.Initializer("w", Zeros({1, 8, 2})).Initializer("r", Zeros({1, 8, 2}));
  Builder::Set(model.Node("LSTM", {"x", "w", "r"}, {"y"}), "clip", 1.0f);
  EXPECT_THAT(std::string(ImportOnnxBytes(model.Bytes(), "").status().message()),
              testing::HasSubstr("clipping is not supported"));
}

TEST(Refusals, LinearAttentionOfOtherShapes) {
  const std::vector<std::string> good = {"1", "3", "4"}, state = {"1", "2", "2", "2"};
  const std::vector<std::vector<std::string>> bad = {{}, {"0"}, {"1", "0"}, {"0", "0", "0"}};
  for (const std::string changed : {"", "past", "decay", "beta"}) {
    for (const std::vector<std::string>& shape : bad) {
      Builder model(27);
      for (const char* name : {"q", "k", "v"}) model.Input(name, good);
      model.Input("past", changed == "past" ? shape : state)
          .Input("decay", changed == "decay" ? shape : good)
          .Input("beta", changed == "beta" ? shape : std::vector<std::string>{"1", "3", "2"});
      auto& node = model.Output("y").Node("LinearAttention",
                                          {"q", "k", "v", "past", "decay", "beta"}, {"y"});
      for (const char* name : {"q_num_heads", "kv_num_heads"}) Builder::Set(node, name, int64_t{2});
      const absl::Status status = ImportOnnxBytes(model.Bytes(), "").status();
      EXPECT_EQ(status.ok(), changed.empty()) << status;
      if (!changed.empty()) {
        EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      }
    }
  }
}

TEST(HostileFiles, AreRefusedQuietly) {
  Builder model;
  model.Input("x", {"1"}).Output("y").Node("Relu", {"x"}, {"y"});
  model.graph().mutable_node(0)->set_name("\xff\xfe not UTF-8");
  const std::string bytes = model.Bytes();
  testing::internal::CaptureStderr();
  (void)ImportOnnxBytes(bytes, "").status();
  std::fflush(stderr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Refusals, FusedGemmOfAnotherActivation) {
  Builder model;
  model.Input("x", {"2", "2"}).Initializer("w", Zeros({2, 2})).Output("y");
  auto& node = model.Node("FusedGemm", {"x", "w"}, {"y"});
  node.set_domain("com.microsoft");
  Builder::Set(node, "activation", std::string("Affine"));
  const auto imported = ImportOnnxBytes(model.Bytes(), "");
  EXPECT_THAT(imported.status().ToString(), testing::HasSubstr("activation 'Affine'"));
}

TEST(Refusals, RotaryEmbeddingOfAnglesWithoutColumns) {
  const std::vector<std::string> good = {"1", "3", "2"};
  const std::vector<std::vector<std::string>> bad = {{}, {"2"}, {"1", "3", "2", "1"}};
  for (const std::string changed : {"", "cos", "sin"}) {
    for (const std::vector<std::string>& shape : bad) {
      Builder model(23);
      model.Input("x", {"1", "3", "8"});
      for (const std::string name : {"cos", "sin"})
        model.Input(name, name == changed ? shape : good);
      auto& node = model.Output("y").Node("RotaryEmbedding", {"x", "cos", "sin"}, {"y"});
      Builder::Set(node, "num_heads", int64_t{2});
      const absl::Status status = ImportOnnxBytes(model.Bytes(), "").status();
      EXPECT_EQ(status.ok(), changed.empty()) << status;
      if (!changed.empty()) {
        EXPECT_THAT(status.message(), testing::HasSubstr("rank 2 or 3"));
      }
    }
  }
}

}  // namespace
}  // namespace mendel
