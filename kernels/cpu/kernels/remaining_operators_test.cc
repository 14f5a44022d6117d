// Tests of operators that neither oneDNN nor the usual kernels compute, against the operators'
// definitions. They cover shapes of several strips and threads, and values that samplers do not
// draw.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/graph.h"
#include "graph/random_graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/lowering/integer_product.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

constexpr double kQuietNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfiniteValue = std::numeric_limits<double>::infinity();
constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8,
                             DType::kU8,  DType::kI32, DType::kI64,  DType::kBool};

TensorType Floats(Shape shape) { return {DType::kF32, std::move(shape)}; }

/// The first elements of the first input.
ChangeInputs Edges(std::vector<double> edges) {
  return [edges = std::move(edges)](std::vector<HostValue>& values) {
    for (size_t k = 0; k < edges.size() && k < values[0].scalars.size(); ++k)
      values[0].scalars[k] = edges[k];
  };
}

/// Axes with lines side by side: strips, their tails, several threads, and extremes.
TEST(RemainingOperators, SoftmaxOfOtherAxes) {
  const ChangeInputs special = Edges({kQuietNan, -kInfiniteValue, 120.0, -120.0, 0.0});
  for (const char* name : {"Softmax", "LogSoftmax"}) {
    for (const int64_t axis : {0, 1}) {
      CheckOperator(name, {Floats({3, 16, 300})}, {{"axis", axis}});
      CheckOperator(name, {Floats({1, 5, 1030})}, {{"axis", axis}}, {{0, {-60, 60}}}, special);
    }
    CheckOperator(name, {Floats({2, 1, 7})}, {{"axis", int64_t{1}}});
  }
}

TEST(RemainingOperators, Functions) {
  const ChangeInputs special = Edges({kQuietNan, kInfiniteValue, -kInfiniteValue, 0.0, -0.0, 1.0,
                                      -1.0, 1e-3, -1e-3, 1.0 + 0x1p-20});
  for (const char* name :
       {"Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Mish", "Sign", "IsNaN"}) {
    CheckOperator(name, {Floats({3, 1000})}, {}, {{0, {-4, 4}}}, special);
    CheckOperator(name, {Floats({3, 1000})}, {}, {{0, {-1, 1}}}, special);
  }
  // Infinite results are left out: the tolerance relative to the largest would be infinite.
  for (const char* name : {"Cosh", "Sinh", "Tan"})
    CheckOperator(name, {Floats({3, 1000})}, {}, {{0, {-1.5, 1.5}}}, Edges({kQuietNan, 0.0, 1e-4}));
  CheckOperator("Cosh", {Floats({8})}, {}, {}, Edges({88.9, -88.9, 80.0, -80.0}));
  CheckOperator("Sinh", {Floats({8})}, {}, {}, Edges({88.9, -88.9, 80.0, -80.0}));
  CheckOperator("Mish", {Floats({9, 300})}, {}, {{0, {-120, 120}}});
  CheckOperator("Selu", {Floats({9, 300})}, {{"alpha", 1.5}, {"gamma", 0.75}}, {{0, {-20, 20}}},
                special);
  CheckOperator("ThresholdedRelu", {Floats({9, 300})}, {{"alpha", -0.5}}, {}, special);
  for (const int64_t negative : {0, 1}) {
    for (const int64_t positive : {0, 1}) {
      CheckOperator("IsInf", {Floats({9, 300})},
                    {{"detect_negative", negative}, {"detect_positive", positive}}, {}, special);
    }
  }
  CheckOperator("Mod", {Floats({5, 700}), Floats({1, 700})}, {{"fmod", int64_t{1}}},
                {{0, {-9, 9}}, {1, {0.5, 3}}}, special);
}

TEST(RemainingOperators, TypedElementwise) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{3, 700}, {3, 700}}, {{1, 70, 1}, {257}}, {{5, 1, 9}, {5, 40, 1}}, {{}, {4, 6}}, {{7}, {1}}};
  for (const auto& [a, b] : shapes) {
    for (const DType dtype : kDTypes) {
      if (dtype == DType::kF16 || dtype == DType::kBF16) continue;
      const ChangeInputs equal = [](std::vector<HostValue>& values) {
        HostValue &x = values[0], &y = values[1];
        if (!x.scalars.empty()) x.scalars[0] = y.scalars[0];
        if (!x.integers.empty()) x.integers[0] = y.integers[0];
      };
      for (const char* name : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
        if (dtype != DType::kBool || std::string_view(name) == "Equal")
          CheckOperator(name, {{dtype, a}, {dtype, b}}, {}, {}, equal);
      }
      CheckOperator("Where", {{DType::kBool, {a.empty() ? 1 : a.back()}}, {dtype, a}, {dtype, b}},
                    {}, {});
    }
    for (const char* name : {"And", "Or", "Xor"})
      CheckOperator(name, {{DType::kBool, a}, {DType::kBool, b}}, {}, {});
    for (const DType dtype : {DType::kI32, DType::kI64}) {
      const ChangeInputs extremes = [dtype](std::vector<HostValue>& values) {
        values[0].integers[0] = HighestInteger(dtype);
        values[1].integers[0] = HighestInteger(dtype);
      };
      for (const char* name : {"Add", "Sub", "Mul", "Max", "Min"})
        CheckOperator(name, {{dtype, a}, {dtype, b}}, {}, {}, extremes);
    }
  }
  CheckOperator("Not", {{DType::kBool, {3, 700}}}, {}, {});
}

TEST(RemainingOperators, Casts) {
  for (const DType from : kDTypes) {
    for (const DType to : kDTypes) {
      const Attributes attrs = {{"to", std::string(DTypeName(to))}};
      const ChangeInputs edges =
          Edges({0.5, -0.5, 0.0, 1e20, -1e20, 3e9, kQuietNan, kInfiniteValue, -kInfiniteValue});
      CheckOperator("Cast", {{from, from == DType::kF32 ? Shape{3, 14000} : Shape{3, 500}}}, attrs,
                    {{0, {-300, 300}}}, [&](std::vector<HostValue>& values) {
                      if (!IsFloat(to)) edges(values);
                      values[0] =
                          HostValue::FromTensor(values[0].ToTensor());  // what the dtype holds
                    });
    }
  }
}

TEST(RemainingOperators, CastsOfViewsAndChains) {
  GraphBuilder builder;
  ValueId x = builder.Input("x", {DType::kI64, {2, 20, 30}});
  x = *builder.Add("Transpose", {x}, {{"perm", Ints{2, 0, 1}}});
  ValueId y = *builder.Add("Cast", {x}, {{"to", std::string("f32")}});
  y = *builder.Add("Exp", {y});
  const ValueId flags = *builder.Add("Cast", {y}, {{"to", std::string("bool")}});
  y = *builder.Add("Add", {y, *builder.Add("Cast", {flags}, {{"to", std::string("f32")}})});
  builder.Output("y", y);
  builder.Output("i", *builder.Add("Cast", {y}, {{"to", std::string("i32")}}));
  const absl::StatusOr<Graph> graph = builder.Build();
  ASSERT_TRUE(graph.ok()) << graph.status();
  Rng rng(1);
  EXPECT_THAT(ExpectMatches(*graph, RandomInputs(rng, *graph), {}),
              testing::Not(testing::Contains("definition")));
}

TEST(RemainingOperators, PowersOfMixedTypes) {
  for (const DType base : {DType::kF32, DType::kF64, DType::kF16, DType::kI32, DType::kI8}) {
    for (const DType exponent : {DType::kF32, DType::kI64, DType::kI32, DType::kU8}) {
      if (base == exponent || (IsIntegral(base) && IsIntegral(exponent))) continue;
      CheckOperator("Pow", {{base, {4, 1, 900}}, {exponent, {3, 1}}}, {},
                    {{0, {1, 4}}, {1, {0, 3}}});
    }
  }
  // With a negative base the parity of the exponent counts, however large it is.
  CheckOperator("Pow", {Floats({2}), {DType::kI64, {3, 1}}}, {}, {},
                [](std::vector<HostValue>& values) {
                  values[0].scalars = {-1, 1};
                  values[1].integers = {(1 << 24) + 1, 3, -2};
                });
}

/// Tiles, their tails and several blocks; one operand or both with a batch; numbers that wrap.
TEST(RemainingOperators, ProductsOfIntegersAndDoubles) {
  const auto large = [](std::vector<HostValue>& values) {
    for (HostValue& value : values) {
      for (size_t k = 0; k < value.integers.size(); k += 3)
        value.integers[k] = 2'000'000'000 - static_cast<int64_t>(k);
    }
  };
  for (const DType dtype : {DType::kI32, DType::kI64, DType::kF64}) {
    for (const auto& [left, right] : std::vector<std::pair<Shape, Shape>>{{{5, 130}, {130, 300}},
                                                                          {{1, 7}, {7, 3}},
                                                                          {{2, 3, 9, 65}, {65, 20}},
                                                                          {{3, 6, 10}, {3, 10, 33}},
                                                                          {{4, 10}, {3, 10, 33}}}) {
      CheckOperator("MatMul", {{dtype, left}, {dtype, right}}, {}, {}, large);
    }
  }
}

/// Codes of 8 bits less a zero point, times stored ones: sums of whole numbers beyond 2^24.
TEST(RemainingOperators, ProductsOfQuantizedNumbers) {
  for (const auto& [rows, depth, columns] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {7, 700, 300}, {1, 3, 5}, {13, 256, 33}}) {
    for (const int threads : {1, 2}) {
      GraphBuilder builder;
      const auto wide = [&](ValueId x) {
        return *builder.Add("Cast", {x}, {{"to", std::string("i32")}});
      };
      const ValueId codes = builder.Input("x", {DType::kU8, {rows, depth}});
      const ValueId zero = builder.Input("zero", {DType::kU8, {}});
      const ValueId x = *builder.Add("Sub", {wide(codes), wide(zero)});
      std::vector<int64_t> weights(static_cast<size_t>(depth * columns));
      for (size_t k = 0; k < weights.size(); ++k) weights[k] = static_cast<int64_t>(k * k % 256);
      const ValueId w = builder.Constant(Tensor::FromInts({DType::kU8, {depth, columns}}, weights));
      builder.Output("y", *builder.Add("MatMul", {x, wide(w)}));
      const Graph graph = *builder.Build();
      std::vector<HostValue> inputs = {
          HostValue::FromTensor(Tensor::Filled(graph.node(codes.node).outputs[0], 255)),
          HostValue::FromTensor(Tensor::Filled({DType::kU8, {}}, 3))};
      for (size_t k = 0; k < inputs[0].integers.size(); k += 7)
        inputs[0].integers[k] = static_cast<int64_t>(k % 256);
      CompileOptions options;
      options.threads = threads;
      EXPECT_THAT(ExpectMatches(graph, inputs, options),
                  testing::Contains(MultipliesInt8() ? "int8 quads" : "matmul, typed"));
    }
  }
}

TEST(RemainingOperators, AveragesOfWindowsInPadding) {
  for (const int64_t count_padding : {0, 1}) {
    for (const int64_t ceil : {0, 1}) {
      CheckOperator("AveragePool", {Floats({2, 20, 15, 16})},
                    {{"kernel_shape", Ints{2, 3}},
                     {"strides", Ints{2, 2}},
                     {"dilations", Ints{1, 2}},
                     {"pads", Ints{3, 1, 2, 4}},
                     {"ceil_mode", ceil},
                     {"count_include_pad", count_padding}});
    }
    CheckOperator("AveragePool", {Floats({2, 3, 5, 4, 6, 3})},
                  {{"kernel_shape", Ints{2, 3, 2, 2}},
                   {"strides", Ints{1, 1, 2, 1}},
                   {"dilations", Ints{1, 1, 1, 1}},
                   {"pads", Ints{1, 0, 0, 1, 0, 0, 1, 0}},
                   {"ceil_mode", int64_t{0}},
                   {"count_include_pad", count_padding}});
  }
}

TEST(RemainingOperators, LayerNormsWithBroadcastParameters) {
  const TensorType x = Floats({5, 6, 400});
  for (const Shape& scale : {Shape{6, 1}, Shape{400}, Shape{5, 1, 400}, Shape{1}, Shape{}}) {
    CheckOperator("LayerNormalization", {x, Floats(scale)},
                  {{"axis", int64_t{1}}, {"epsilon", 1e-5}});
    CheckOperator("LayerNormalization", {x, Floats(scale), Floats({5, 6, 1})},
                  {{"axis", int64_t{2}}, {"epsilon", 1e-5}});
  }
}

TEST(RemainingOperators, TransposedConvolutions) {
  const auto check = [](const Shape& x, const Shape& w, int64_t group, const Ints& strides,
                        const Ints& dilations, const Ints& pads, const Ints& extra) {
    CheckOperator("ConvTranspose", {Floats(x), Floats(w), Floats({w[1] * group})},
                  {{"group", group},
                   {"strides", strides},
                   {"dilations", dilations},
                   {"pads", pads},
                   {"output_padding", extra}});
  };
  check({2, 6, 9, 7}, {6, 4, 2, 3}, 1, {2, 3}, {1, 1}, {0, 0, 0, 0},
        {5, 7});  // beyond the kernel's reach
  check({2, 6, 9, 7}, {6, 4, 2, 3}, 3, {3, 1}, {2, 1}, {1, 2, 0, 3},
        {9, 0});  // groups, dilation, unequal pads
  check({1, 3, 4, 3, 5, 2}, {3, 2, 2, 1, 3, 2}, 1, {2, 1, 2, 1}, {1, 1, 1, 2},
        {0, 0, 1, 0, 1, 0, 0, 1}, {0, 0, 1, 0});
}

/// Extents of labels that make operands larger than a block of a product.
int64_t ExtentOf(char label) {
  static const std::map<char, int64_t> kExtents = {{'a', 3},  {'b', 2},  {'i', 33},
                                                   {'j', 40}, {'k', 17}, {'m', 5}};
  return kExtents.at(label);
}

Shape ShapeOf(const std::string& labels) {
  Shape shape;
  for (const char label : labels) shape.push_back(ExtentOf(label));
  return shape;
}

struct EinsumCase {
  std::string left, right, out;
  bool product;  ///< every summed label is one of both operands
};

const EinsumCase kEinsums[] = {
    {"ij", "jk", "ik", true},     {"bij", "bjk", "bik", true}, {"aibj", "akbj", "abik", true},
    {"abij", "jk", "abik", true}, {"ij", "jk", "ki", true},    {"i", "j", "ij", true},
    {"ij", "ij", "", true},       {"ii", "ij", "j", true},     {"aij", "ajk", "kia", true},
    {"imj", "kmj", "ik", true},   {"mij", "jmk", "ik", true},  {"ij", "jk", "", false},
    {"aij", "b", "ba", false},    {"bim", "bjm", "bij", true}, {"jki", "jkm", "im", true},
    {"iaj", "kj", "aik", true},   {"iij", "jk", "ik", true}};

TEST(RemainingOperators, Einsums) {
  for (const EinsumCase& one : kEinsums) {
    const std::string equation = one.left + "," + one.right + "->" + one.out;
    CheckOperator("Einsum", {Floats(ShapeOf(one.left)), Floats(ShapeOf(one.right))},
                  {{"equation", equation}});
    for (const DType dtype : {DType::kI32, DType::kI64, DType::kF64}) {
      CheckOperator("Einsum", {{dtype, ShapeOf(one.left)}, {dtype, ShapeOf(one.right)}},
                    {{"equation", equation}});
    }
  }
}

/// Operands that lie transposed, or are constants, and results that are read where they lie.
TEST(RemainingOperators, EinsumsOfViewsAndConstants) {
  for (const EinsumCase& one : kEinsums) {
    for (const std::string kind : {"views", "left constant", "right constant"}) {
      SCOPED_TRACE(one.left + "," + one.right + "->" + one.out + " " + kind);
      Rng rng(3);
      GraphBuilder builder;
      std::vector<HostValue> inputs;
      const auto operand = [&](const std::string& labels, bool constant) {
        Shape shape = ShapeOf(labels);
        if (!constant) std::reverse(shape.begin(), shape.end());
        HostValue value{Floats(shape), {}, {}};
        for (int64_t k = NumElements(value.type); k > 0; --k)
          value.scalars.push_back(static_cast<double>(rng.Between(-64, 64)) / 64);
        if (constant) return builder.Constant(value.ToTensor(), "w");
        inputs.push_back(value);
        Ints perm;
        for (int64_t d = static_cast<int64_t>(shape.size()); d-- > 0;) perm.push_back(d);
        const ValueId x = builder.Input(Cat("x", inputs.size()), value.type);
        return *builder.Add("Transpose", {*builder.Add("Neg", {x})}, {{"perm", perm}});
      };
      const ValueId left = operand(one.left, kind == "left constant");
      const ValueId right = operand(one.right, kind == "right constant");
      const ValueId y = *builder.Add("Einsum", {left, right},
                                     {{"equation", one.left + "," + one.right + "->" + one.out}});
      builder.Output("y", y);
      builder.Output("z", *builder.Add("Neg", {y}));
      const absl::StatusOr<Graph> graph = builder.Build();
      ASSERT_TRUE(graph.ok()) << graph.status();
      const std::vector<std::string> kernels = ExpectMatches(*graph, inputs, {});
      EXPECT_THAT(kernels, testing::Not(testing::Contains("definition")));
      EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "contraction, strided"),
                one.product ? 0 : 1);
    }
  }
}

}  // namespace
}  // namespace mendel::cpu
