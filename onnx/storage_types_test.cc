// Types that models store numbers in: 8-bit floats, integers of all widths, and bits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "graph/evaluate.h"
#include "onnx/import.h"
#include "onnx/model_builder.h"

namespace mendel {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNan;
using Builder = ModelBuilder;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor Values(DType dtype, const Numbers& values) {
  return Tensor::FromDoubles({dtype, {static_cast<int64_t>(values.size())}}, values);
}

/// Output 0 of the imported model, whose inputs are initializers.
Tensor Computed(const Builder& model) {
  const auto imported = ImportOnnxBytes(model.Bytes(), "");
  EXPECT_TRUE(imported.ok()) << imported.status();
  if (!imported.ok()) return {};
  const auto outputs = Evaluate(imported->graph, {});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? (*outputs)[0].ToTensor() : Tensor();
}

std::string Refusal(const Builder& model) {
  const auto imported = ImportOnnxBytes(model.Bytes(), "");
  return std::string(imported.status().message());
}

Numbers Cast(const Numbers& values, DType to, bool saturates, DType from = DType::kF32) {
  Builder model(25, 11);
  model.Initializer("x", Values(from, values)).Output("y");
  onnx::NodeProto& cast = model.Node("Cast", {"x"}, {"y"});
  Builder::Set(cast, "to", int64_t{DTypeToOnnx(to)});
  Builder::Set(cast, "saturate", int64_t{saturates});
  const Tensor result = Computed(model);
  EXPECT_EQ(result.dtype(), to);
  return result.ToDoubles();
}

TEST(StorageTypes, CastsToFloat8SaturateOrNot) {
  const Numbers values = {1.0625, -460, 1e6, kInfinity, -kInfinity};
  EXPECT_THAT(Cast(values, DType::kF8E4M3FN, true), ElementsAre(1, -448, 448, 448, -448));
  EXPECT_THAT(Cast(values, DType::kF8E4M3FN, false),
              ElementsAre(1, -448, IsNan(), IsNan(), IsNan()));
  EXPECT_THAT(Cast(values, DType::kF8E5M2, true), ElementsAre(1, -448, 57344, 57344, -57344));
  EXPECT_THAT(Cast(values, DType::kF8E5M2, false),
              ElementsAre(1, -448, kInfinity, kInfinity, -kInfinity));
  EXPECT_THAT(Cast(values, DType::kF8E4M3FNUZ, true), ElementsAre(1, -240, 240, 240, -240));
  EXPECT_THAT(Cast({std::nan("")}, DType::kF8E5M2FNUZ, true), ElementsAre(IsNan()));
  EXPECT_THAT(Cast({17, 300}, DType::kF8E4M3FN, true, DType::kI32), ElementsAre(16, 288));
  EXPECT_THAT(Cast({57344}, DType::kF8E4M3FN, true, DType::kF8E5M2), ElementsAre(448));
}

TEST(StorageTypes, CastsOfUnsignedIntegersWrapAndRound) {
  EXPECT_THAT(Cast({-1, 65536, 70000}, DType::kU16, true, DType::kI64),
              ElementsAre(65535, 0, 4464));
  EXPECT_THAT(Cast({-1, 40000}, DType::kI16, true, DType::kI64), ElementsAre(-1, -25536));
  EXPECT_THAT(Cast({-1}, DType::kU32, true, DType::kI32), ElementsAre(0xFFFFFFFFu));
  EXPECT_THAT(Cast({0x1p63, 3}, DType::kF32, true, DType::kU64), ElementsAre(0x1p63, 3));
  EXPECT_THAT(Cast({0x1p63, 3}, DType::kU64, true, DType::kF32), ElementsAre(0x1p63, 3));
  EXPECT_THAT(Cast({0x1p63, 3}, DType::kI64, true, DType::kU64), ElementsAre(-0x1p63, 3));
}

TEST(StorageTypes, QuantizationToFloat8AndBack) {
  Builder model(25, 11);
  model.Initializer("x", Values(DType::kF32, {0.3, -3, 1000}))
      .Initializer("scale", Tensor::Scalar(DType::kF32, 2))
      .Initializer("zero", Tensor::Scalar(DType::kF8E4M3FN, 0))
      .Output("y");
  model.Node("QuantizeLinear", {"x", "scale", "zero"}, {"q"});
  model.Node("DequantizeLinear", {"q", "scale", "zero"}, {"y"});
  EXPECT_THAT(Computed(model).ToDoubles(), ElementsAre(DoubleEq(0.3125), -3, 896));
}

TEST(StorageTypes, ArithmeticOnThemIsRefusedByName) {
  for (const DType dtype : {DType::kF8E5M2, DType::kU64}) {
    Builder model(25, 11);
    model.Initializer("x", Values(dtype, {1, 2})).Output("y");
    model.Node("Max", {"x", "x"}, {"y"});
    EXPECT_THAT(Refusal(model), HasSubstr(dtype == DType::kU64 ? "u64" : "f8e5m2"));
    EXPECT_THAT(Refusal(model), HasSubstr("a type for storage"));
  }
}

Numbers Shifted(DType dtype, const Numbers& x, const Numbers& y, const std::string& direction) {
  Builder model(28, 13);
  model.Initializer("x", Values(dtype, x)).Initializer("y", Values(dtype, y)).Output("z");
  Builder::Set(model.Node("BitShift", {"x", "y"}, {"z"}), "direction", direction);
  return Computed(model).ToDoubles();
}

Builder PackedModel(const std::string& reader, int32_t data_type, const std::string& bytes) {
  Builder model(25, 11);
  onnx::TensorProto& codes = *model.graph().add_initializer();
  codes.set_name("x");
  codes.set_data_type(data_type);
  codes.add_dims(3);
  codes.set_raw_data(bytes);
  model.Initializer("scale", Tensor::Scalar(DType::kF32, 0.5)).Output("y");
  model.Node(reader, {"x", "scale"}, {"y"});
  return model;
}

TEST(StorageTypes, FewBitsAreReadByDequantizeLinearOnly) {
  const auto read = [](int32_t data_type, const std::string& bytes) {
    return Computed(PackedModel("DequantizeLinear", data_type, bytes)).ToDoubles();
  };
  EXPECT_THAT(read(onnx::TensorProto::INT4, "\x8f\x07"), ElementsAre(-0.5, -4, 3.5));
  EXPECT_THAT(read(onnx::TensorProto::UINT4, "\x8f\x07"), ElementsAre(7.5, 4, 3.5));
  EXPECT_THAT(read(onnx::TensorProto::INT2, "\x1e"), ElementsAre(-1, -0.5, 0.5));
  EXPECT_THAT(read(onnx::TensorProto::UINT2, "\x1e"), ElementsAre(1, 1.5, 0.5));
  EXPECT_THAT(Refusal(PackedModel("CastLike", onnx::TensorProto::INT4, "\x8f\x07")),
              HasSubstr("INT4"));
  EXPECT_THAT(Refusal(PackedModel("DequantizeLinear", onnx::TensorProto::INT4, "\x8f")),
              HasSubstr("bytes"));
}

TEST(Bits, ShiftsFillWithZerosOrTheSign) {
  EXPECT_THAT(Shifted(DType::kU8, {129, 3, 255}, {1, 7, 8}, "LEFT"), ElementsAre(2, 128, 0));
  EXPECT_THAT(Shifted(DType::kU8, {129, 3, 255}, {1, 1, 9}, "RIGHT"), ElementsAre(64, 1, 0));
  EXPECT_THAT(Shifted(DType::kI8, {-128, -1, 5, -7}, {1, 70, 70, -1}, "RIGHT"),
              ElementsAre(-64, -1, 0, -1));
  EXPECT_THAT(Shifted(DType::kI16, {-3, 16384, 1}, {1, 1, -1}, "LEFT"), ElementsAre(-6, -32768, 0));
  EXPECT_THAT(Shifted(DType::kU64, {0x1p63, 0x1p63}, {63, 64}, "RIGHT"), ElementsAre(1, 0));
}

TEST(Bits, OperatorsOfTwoIntegers) {
  const auto computed = [](const std::string& op, DType dtype, Numbers a, Numbers b) {
    Builder model(25, 11);
    model.Initializer("a", Values(dtype, a)).Initializer("b", Values(dtype, b)).Output("y");
    model.Node(op, {"a", "b"}, {"y"});
    return Computed(model).ToDoubles();
  };
  EXPECT_THAT(computed("BitwiseAnd", DType::kI16, {12, -1}, {10, 300}), ElementsAre(8, 300));
  EXPECT_THAT(computed("BitwiseOr", DType::kU32, {12, 0x1p31}, {10, 1}),
              ElementsAre(14, 0x1p31 + 1));
  EXPECT_THAT(computed("BitwiseXor", DType::kI8, {12, -1}, {10, 127}), ElementsAre(6, -128));
  EXPECT_THAT(computed("BitwiseXor", DType::kU64, {0x1p63}, {0x1p62}),
              ElementsAre(0x1p63 + 0x1p62));
}

}  // namespace
}  // namespace mendel
