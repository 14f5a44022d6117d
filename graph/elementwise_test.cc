// Elementwise operators against values worked out by hand.

#include "graph/elementwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/sample_node.h"

namespace mendel {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

HostValue Floats(std::vector<double> values, DType dtype = DType::kF32) {
  const int64_t count = static_cast<int64_t>(values.size());
  return {{dtype, {count}}, std::move(values), {}};
}

HostValue Integers(std::vector<int64_t> values, DType dtype = DType::kI64) {
  const int64_t count = static_cast<int64_t>(values.size());
  return {{dtype, {count}}, {}, std::move(values)};
}

HostValue Bools(std::vector<int64_t> values) { return Integers(std::move(values), DType::kBool); }

/// The one output of `op`.
HostValue Eval(std::string_view op, std::vector<HostValue> inputs, Attributes attrs = {}) {
  std::vector<TensorType> types;
  std::vector<const HostValue*> operands;
  for (const HostValue& input : inputs) {
    types.push_back(input.type);
    operands.push_back(&input);
  }
  const absl::StatusOr<SampledNode> node = MakeNode(GetOp(op), types, std::move(attrs));
  EXPECT_TRUE(node.ok()) << node.status();
  return node.ok() ? EvaluateNode(*node->op, node->view(), operands)[0] : HostValue{};
}

absl::Status Refusal(std::string_view op, std::vector<TensorType> types, Attributes attrs = {}) {
  return MakeNode(GetOp(op), std::move(types), std::move(attrs)).status();
}

TEST(Elementwise, RoundsHalvesToEven) {
  EXPECT_THAT(Eval("Round", {Floats({0.5, 1.5, 2.5, -0.5, -1.5, 2.4, -2.6})}).scalars,
              ElementsAre(0, 2, 2, 0, -2, 2, -3));
  EXPECT_THAT(Eval("Floor", {Floats({1.5, -1.5, 2})}).scalars, ElementsAre(1, -2, 2));
  EXPECT_THAT(Eval("Ceil", {Floats({1.5, -1.5, 2})}).scalars, ElementsAre(2, -1, 2));
  EXPECT_THAT(Eval("Sign", {Floats({1.5, -1.5, 0})}).scalars, ElementsAre(1, -1, 0));
  EXPECT_THAT(Eval("Sign", {Integers({7, kMin64, 0})}).integers, ElementsAre(1, -1, 0));
}

TEST(Elementwise, ModTakesTheSignRequested) {
  const HostValue a = Integers({-4, 7, 5, 4, -7, 8, 3, kMin64});
  const HostValue b = Integers({2, -3, 8, -2, 3, 5, 0, -1});
  EXPECT_THAT(Eval("Mod", {a, b}).integers, ElementsAre(0, -2, 5, 0, 2, 3, 0, 0));
  EXPECT_THAT(Eval("Mod", {a, b}, {{"fmod", int64_t{1}}}).integers,
              ElementsAre(0, 1, 5, 0, -1, 3, 0, 0));
  EXPECT_THAT(
      Eval("Mod", {Floats({-4.5, 7, 5.25}), Floats({2, -3, 8})}, {{"fmod", int64_t{1}}}).scalars,
      ElementsAre(-0.5, 1, 5.25));
  EXPECT_EQ(Refusal("Mod", {{DType::kF32, {2}}, {DType::kF32, {2}}}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Elementwise, IntegerDivisionTruncates) {
  EXPECT_THAT(
      Eval("Div", {Integers({7, -7, 7, -7, 5, kMin64}), Integers({2, 2, -2, -2, 0, -1})}).integers,
      ElementsAre(3, -3, -3, 3, 0, kMin64));
  EXPECT_THAT(
      Eval("Div", {Integers({-128, 100}, DType::kI8), Integers({-1, 7}, DType::kI8)}).integers,
      ElementsAre(-128, 14));
  EXPECT_THAT(Eval("Div", {Floats({7, -7}), Floats({2, 2})}).scalars, ElementsAre(3.5, -3.5));
}

TEST(Elementwise, IntegersWrap) {
  EXPECT_THAT(Eval("Add", {Integers({kMax64, 1}), Integers({1, 1})}).integers,
              ElementsAre(kMin64, 2));
  EXPECT_THAT(Eval("Sub", {Integers({kMin64}), Integers({1})}).integers, ElementsAre(kMax64));
  EXPECT_THAT(Eval("Mul", {Integers({100}, DType::kI8), Integers({3}, DType::kI8)}).integers,
              ElementsAre(44));
  EXPECT_THAT(Eval("Neg", {Integers({kMin64, 5})}).integers, ElementsAre(kMin64, -5));
  EXPECT_THAT(Eval("Abs", {Integers({-128, -5, 5}, DType::kI8)}).integers, ElementsAre(-128, 5, 5));
  EXPECT_THAT(
      Eval("Pow", {Integers({3, -2, 2, 0, -1, 2}), Integers({4, 3, 64, 0, -3, -1})}).integers,
      ElementsAre(81, -8, 0, 1, -1, 0));
  EXPECT_THAT(Eval("Pow", {Integers({2}, DType::kI32), Floats({2.5})}).integers, ElementsAre(5));
  EXPECT_THAT(Eval("Pow", {Floats({2}), Integers({-1}, DType::kI64)}).scalars, ElementsAre(0.5));
}

TEST(Elementwise, ComparesLargeIntegersExactly) {
  const int64_t big = int64_t{1} << 53;
  const HostValue a = Integers({big, big + 1, big + 1});
  const HostValue b = Integers({big + 1, big + 1, big});
  EXPECT_THAT(Eval("Less", {a, b}).integers, ElementsAre(1, 0, 0));
  EXPECT_THAT(Eval("LessOrEqual", {a, b}).integers, ElementsAre(1, 1, 0));
  EXPECT_THAT(Eval("Greater", {a, b}).integers, ElementsAre(0, 0, 1));
  EXPECT_THAT(Eval("GreaterOrEqual", {a, b}).integers, ElementsAre(0, 1, 1));
  EXPECT_THAT(Eval("Equal", {a, b}).integers, ElementsAre(0, 1, 0));
  EXPECT_THAT(Eval("Max", {a, b}).integers, ElementsAre(big + 1, big + 1, big + 1));
  EXPECT_THAT(Eval("Min", {a, b}).integers, ElementsAre(big, big + 1, big));
  EXPECT_EQ(Eval("Less", {a, b}).type.dtype, DType::kBool);
}

TEST(Elementwise, NothingComparesToNaN) {
  const HostValue a = Floats({kNaN, 1, kNaN, kInf});
  const HostValue b = Floats({1, kNaN, kNaN, kInf});
  EXPECT_THAT(Eval("LessOrEqual", {a, b}).integers, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(Eval("GreaterOrEqual", {a, b}).integers, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(Eval("Equal", {a, b}).integers, ElementsAre(0, 0, 0, 1));
  for (const char* op : {"Min", "Max"}) {
    const std::vector<double> values = Eval(op, {a, b}).scalars;
    EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]) && std::isnan(values[2])) << op;
    EXPECT_EQ(values[3], kInf);
  }
}

TEST(Elementwise, IsInfAndIsNaN) {
  const HostValue x = Floats({1, kInf, -kInf, kNaN});
  EXPECT_THAT(Eval("IsInf", {x}).integers, ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(Eval("IsInf", {x}, {{"detect_negative", int64_t{0}}}).integers,
              ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(Eval("IsInf", {x}, {{"detect_positive", int64_t{0}}}).integers,
              ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(Eval("IsNaN", {x}).integers, ElementsAre(0, 0, 0, 1));
  EXPECT_EQ(Eval("IsNaN", {x}).type.dtype, DType::kBool);
}

TEST(Elementwise, Activations) {
  const auto near = [](double value) { return DoubleNear(value, 1e-12); };
  EXPECT_THAT(Eval("Gelu", {Floats({0, 1, -1, -10})}).scalars,
              ElementsAre(0, near(0.841344746068543), near(-0.158655253931457),
                          DoubleNear(-7.61985302416e-23, 1e-33)));
  EXPECT_THAT(Eval("Gelu", {Floats({1, -1})}, {{"approximate", std::string("tanh")}}).scalars,
              ElementsAre(near(0.8411919906082768), near(-0.15880800939172324)));
  EXPECT_THAT(Eval("HardSwish", {Floats({-4, -3, -1, 0, 1, 3, 4})}).scalars,
              ElementsAre(0, 0, near(-1.0 / 3), 0, near(2.0 / 3), 3, 4));
  EXPECT_THAT(Eval("HardSigmoid", {Floats({-4, 0, 1, 4})}).scalars,
              ElementsAre(0, 0.5, near(0.5 + static_cast<double>(0.2F)), 1));
  EXPECT_THAT(Eval("Sigmoid", {Floats({0, 1000, -1000})}).scalars, ElementsAre(0.5, 1, 0));
  EXPECT_THAT(Eval("Softplus", {Floats({0, 1000, -1000})}).scalars,
              ElementsAre(near(std::log(2.0)), 1000, 0));
  EXPECT_THAT(Eval("LeakyRelu", {Floats({2, -2})}, {{"alpha", 0.25}}).scalars,
              ElementsAre(2, -0.5));
  EXPECT_THAT(Eval("Celu", {Floats({3, -2})}, {{"alpha", 2.0}}).scalars,
              ElementsAre(3, near(2 * std::expm1(-1))));
  EXPECT_THAT(Eval("Elu", {Floats({3, -2})}, {{"alpha", 2.0}}).scalars,
              ElementsAre(3, near(2 * std::expm1(-2))));
  EXPECT_THAT(Eval("ThresholdedRelu", {Floats({1, 1.5, -3})}).scalars, ElementsAre(0, 1.5, 0));
  EXPECT_THAT(Eval("Softsign", {Floats({1, -3})}).scalars, ElementsAre(0.5, -0.75));
  EXPECT_THAT(Eval("Mish", {Floats({1})}).scalars,
              ElementsAre(near(std::tanh(std::log1p(std::exp(1))))));
  EXPECT_THAT(Eval("PRelu", {Floats({2, -2, kInf, -4}), Floats({0.5, 0.5, 0.5, 0})}).scalars,
              ElementsAre(2, -1, kInf, 0));
  EXPECT_THAT(Eval("PRelu", {Integers({-3, 4}), Integers({2, 2})}).integers, ElementsAre(-6, 4));
}

TEST(Elementwise, Clips) {
  EXPECT_THAT(Eval("Clip", {Floats({-3, 0.5, 3})}, {{"min", -1.0}, {"max", 1.0}}).scalars,
              ElementsAre(-1, 0.5, 1));
  EXPECT_THAT(Eval("Clip", {Floats({-3, 0.5, 3})}).scalars, ElementsAre(-3, 0.5, 3));
  EXPECT_THAT(Eval("Clip", {Floats({0})}, {{"min", 2.0}, {"max", 1.0}}).scalars, ElementsAre(1));
  EXPECT_THAT(Eval("Clip", {Integers({kMin64, 5, kMax64})}).integers,
              ElementsAre(kMin64, 5, kMax64));
  EXPECT_THAT(Eval("Clip", {Integers({kMin64, 5, kMax64})}, {{"min", -1.5}, {"max", 2.5}}).integers,
              ElementsAre(-1, 2, 2));
}

TEST(Elementwise, SelectsAndLogic) {
  EXPECT_THAT(Eval("Where", {Bools({1, 0}), Floats({1, 2}), Floats({3, kNaN})}).scalars[0], 1);
  EXPECT_THAT(Eval("Where", {Bools({0}), Integers({1, 2}), Integers({kMax64, kMin64})}).integers,
              ElementsAre(kMax64, kMin64));
  const HostValue a = Bools({0, 0, 1, 1});
  const HostValue b = Bools({0, 1, 0, 1});
  EXPECT_THAT(Eval("And", {a, b}).integers, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(Eval("Or", {a, b}).integers, ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(Eval("Xor", {a, b}).integers, ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(Eval("Not", {a}).integers, ElementsAre(1, 1, 0, 0));
}

TEST(Cast, RoundsTruncatesAndWraps) {
  const auto to = [](const char* dtype) { return Attributes{{"to", std::string(dtype)}}; };
  EXPECT_THAT(Eval("Cast", {Floats({1.9, -1.9, 300, kNaN})}, to("i32")).integers,
              ElementsAre(1, -1, 300, 0));
  EXPECT_THAT(Eval("Cast", {Floats({300})}, to("u8")).integers, ElementsAre(44));
  EXPECT_THAT(Eval("Cast", {Floats({0, -0.0, 0.25, kNaN})}, to("bool")).integers,
              ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(Eval("Cast", {Floats({2049, 65520, 1e-9, 1.0 / 3})}, to("f16")).scalars,
              ElementsAre(2048, kInf, 0, 0.333251953125));
  EXPECT_THAT(Eval("Cast", {Floats({257})}, to("bf16")).scalars, ElementsAre(256));
  EXPECT_THAT(Eval("Cast", {Floats({0.1}, DType::kF64)}, to("f32")).scalars,
              ElementsAre(static_cast<double>(0.1f)));
  EXPECT_THAT(
      Eval("Cast",
           {Integers({(int64_t{1} << 24) + 1, (int64_t{1} << 60) + (int64_t{1} << 36) + 1})},
           to("f32"))
          .scalars,
      ElementsAre(0x1p24, 0x1p60 + 0x1p37));
  EXPECT_THAT(Eval("Cast", {Integers({70000, -1})}, to("f16")).scalars, ElementsAre(kInf, -1));
  EXPECT_THAT(Eval("Cast", {Integers({int64_t{1} << 32, -1, 256})}, to("i32")).integers,
              ElementsAre(0, -1, 256));
  EXPECT_THAT(Eval("Cast", {Integers({300, -1})}, to("u8")).integers, ElementsAre(44, 255));
  EXPECT_THAT(Eval("Cast", {Integers({-7, 0})}, to("bool")).integers, ElementsAre(1, 0));
  EXPECT_THAT(Eval("Cast", {Bools({1, 0})}, to("f16")).scalars, ElementsAre(1, 0));
  EXPECT_EQ(Refusal("Cast", {{DType::kF32, {1}}}, to("f8")).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Elementwise, RefusesDTypes) {
  const TensorType f{DType::kF32, {2}};
  const TensorType i{DType::kI64, {2}};
  const TensorType b{DType::kBool, {2}};
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(Refusal("Exp", {i}).code(), invalid);
  EXPECT_EQ(Refusal("Add", {b, b}).code(), invalid);
  EXPECT_EQ(Refusal("Sub", {f, i}).code(), invalid);
  EXPECT_EQ(Refusal("Less", {b, b}).code(), invalid);
  EXPECT_EQ(Refusal("And", {i, i}).code(), invalid);
  EXPECT_EQ(Refusal("Not", {f}).code(), invalid);
  EXPECT_EQ(Refusal("Where", {i, f, f}).code(), invalid);
  EXPECT_EQ(Refusal("Where", {b, f, i}).code(), invalid);
  EXPECT_EQ(Refusal("IsNaN", {i}).code(), invalid);
  EXPECT_EQ(Refusal("PRelu", {{DType::kF32, {1}}, f}).code(), invalid);
  EXPECT_EQ(Refusal("Gelu", {f}, {{"approximate", std::string("sigmoid")}}).code(), invalid);
}

/// Field elements of `op` on the given elements, all operands scalars known only at run time.
Fp Query(std::string_view op, std::vector<TensorType> types, std::vector<Fp> arguments,
         Attributes attrs = {}) {
  const absl::StatusOr<SampledNode> node = MakeNode(GetOp(op), std::move(types), std::move(attrs));
  EXPECT_TRUE(node.ok()) << node.status();
  std::vector<Operand<Fp>> operands;
  for (size_t k = 0; k < arguments.size(); ++k)
    operands.push_back({&node->inputs[k], &arguments[k], nullptr});
  const Arithmetic<Fp> arithmetic({1, 2});
  std::array<Fp, 1> result;
  node->op->meaning.field(Reader<Fp>(arithmetic, operands), node->view(), 0, result);
  return result[0];
}

TEST(Elementwise, FieldAxioms) {
  Rng rng(7);
  const PrimeField field = PrimeField::RandomCertifying(rng);
  const FieldScope scope(field);
  const Fp a{field.RandomElement(rng)};
  const Fp b{field.RandomElement(rng)};
  const TensorType f{DType::kF32, {}};
  const TensorType i{DType::kI64, {}};
  EXPECT_EQ(Query("Greater", {f, f}, {a, b}), Query("Less", {f, f}, {b, a}));
  EXPECT_EQ(Query("GreaterOrEqual", {f, f}, {a, b}), Query("LessOrEqual", {f, f}, {b, a}));
  EXPECT_NE(Query("Less", {f, f}, {a, b}), Query("Less", {f, f}, {b, a}));
  EXPECT_EQ(Query("Equal", {f, f}, {a, b}), Query("Equal", {f, f}, {b, a}));
  EXPECT_NE(Query("Equal", {f, f}, {a, a}), a);
  EXPECT_EQ(Query("Max", {f, f}, {a, b}), Query("Max", {f, f}, {b, a}));
  EXPECT_EQ(Query("Max", {f, f}, {a, a}), a);
  EXPECT_NE(Query("Max", {f, f}, {a, b}), Query("Min", {f, f}, {a, b}));
  EXPECT_EQ(Query("Div", {f, f}, {a, b}) * b, a);
  EXPECT_NE(Query("Div", {i, i}, {a, b}) * b, a) << "the quotient of integers is truncated";
  EXPECT_EQ(Query("PRelu", {f, f}, {Fp{0}, b}), Fp{0});
  EXPECT_NE(Query("Sigmoid", {f}, {Fp{0}}), Fp{0});
  EXPECT_NE(Query("Pow", {f, f}, {a, b}), Query("Pow", {i, i}, {a, b}));
  EXPECT_NE(Query("Clip", {f}, {Fp{0}}, {{"min", 1.0}}), Fp{0});
  EXPECT_EQ(Query("Clip", {f}, {Fp{0}}, {{"min", -1.0}}), Fp{0});
  EXPECT_NE(Query("LeakyRelu", {f}, {a}), Query("LeakyRelu", {f}, {a}, {{"alpha", 0.5}}));
}

TEST(Cast, FieldIdentityOnlyWhereNothingIsLost) {
  Rng rng(8);
  const PrimeField field = PrimeField::RandomCertifying(rng);
  const FieldScope scope(field);
  const Fp x{field.RandomElement(rng)};
  const auto cast = [&](DType from, const char* to, int64_t exact = 0) {
    return Query("Cast", {{from, {}}}, {x}, {{"exact", exact}, {"to", std::string(to)}});
  };
  EXPECT_EQ(cast(DType::kF16, "f32"), x);
  EXPECT_EQ(cast(DType::kF32, "f32"), x);
  EXPECT_EQ(cast(DType::kBool, "f32"), x);
  EXPECT_NE(cast(DType::kF32, "f16"), x);
  EXPECT_NE(cast(DType::kF16, "bf16"), x);
  EXPECT_NE(cast(DType::kI8, "i32"), x) << "sums of i8 wrap";
  EXPECT_NE(cast(DType::kI64, "f32"), x);
  EXPECT_EQ(cast(DType::kF32, "f16"), cast(DType::kF64, "f16")) << "one function of a real number";
  EXPECT_NE(cast(DType::kF32, "f16"), cast(DType::kF32, "bf16"));
  EXPECT_EQ(cast(DType::kF32, "f16", 1), x) << "no digits are lost";
  EXPECT_NE(cast(DType::kF32, "i32", 1), x) << "truncates all the same";
}

}  // namespace
}  // namespace mendel
