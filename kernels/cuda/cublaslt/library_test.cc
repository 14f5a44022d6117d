// Products through cuBLASLt: what is read in place and taken along, whole plans on the fake library, faults of every call.

#include "kernels/cuda/cublaslt/library.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cublaslt/product_match.h"
#include "kernels/cuda/cublaslt/strided_value.h"
#include "kernels/cuda/fake/fake_cublaslt.h"
#include "kernels/cuda/fake/fake_driver.h"
#include "kernels/cuda/product_case.h"

namespace mendel::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Graph Parsed(const std::string& body) {
  auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

/// The graph's first MatMul.
int32_t ProductOf(const Graph& graph) {
  int32_t id = 0;
  while (graph.node(id).op->name != "MatMul") ++id;
  return id;
}

/// All ways to compute it.
std::vector<ProductMatch> Matches(const Graph& graph, Numerics numerics = Numerics::kDefault) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  const std::vector<bool> claimed(constant.size(), false);
  return MatchProduct({graph, constant, claimed}, ProductOf(graph), numerics);
}

TEST(StridesReshaped, KeepsElementsWhereTheyAre) {
  EXPECT_EQ(StridesReshaped({4, 6}, {6, 1}, {2, 2, 3, 2}), (Ints{12, 6, 2, 1}));
  EXPECT_EQ(StridesReshaped({2, 2, 3, 2}, {12, 6, 2, 1}, {24}), (Ints{1}));
  // Rows that lie apart: columns may be divided, and rows and columns cannot become one.
  EXPECT_EQ(StridesReshaped({4, 6}, {10, 1}, {4, 3, 2}), (Ints{10, 2, 1}));
  EXPECT_EQ(StridesReshaped({4, 6}, {10, 1}, {24}), std::nullopt);
  EXPECT_EQ(StridesReshaped({4, 6}, {1, 4}, {2, 12}), std::nullopt);
  // Dimensions of one element come and go.
  const auto ones = StridesReshaped({4, 1, 6}, {6, 99, 1}, {1, 4, 6, 1});
  ASSERT_TRUE(ones.has_value());
  EXPECT_EQ((*ones)[1], 6);
  EXPECT_EQ((*ones)[2], 1);
  EXPECT_TRUE(StridesReshaped({1}, {1}, {1, 1}).has_value());
}

/// Attention's first product: positions and heads side by side, keys transposed.
Graph Heads() {
  return Parsed(R"(%0 = Input() {name = "q", shape = [1, 5, 12]}
    %1 = Input() {name = "k", shape = [1, 7, 12]}
    %2 = Reshape(%0) {shape = [1, 5, 3, 4]}
    %3 = Transpose(%2) {perm = [0, 2, 1, 3]}
    %4 = Reshape(%1) {shape = [1, 7, 3, 4]}
    %5 = Transpose(%4) {perm = [0, 2, 3, 1]}
    %6 = MatMul(%3, %5)
    return "y" = %6)");
}

TEST(MatchProduct, ReadsHeadsInPlace) {
  const Graph graph = Heads();
  const auto matches = Matches(graph);
  ASSERT_EQ(matches.size(), 1u);
  const ProductMatch& match = matches[0];
  EXPECT_EQ(match.left, (ValueId{0, 0}));
  EXPECT_EQ(match.right, (ValueId{1, 0}));
  EXPECT_THAT(match.nodes, ElementsAre(2, 3, 4, 5, 6));
  const LtProduct& product = match.product;
  EXPECT_EQ(product.batch, 3);
  EXPECT_EQ(std::vector<int64_t>({product.m, product.n, product.k}), (std::vector<int64_t>{5, 7, 4}));
  EXPECT_EQ(product.left, (LtMatrix{false, 12, 4}));
  EXPECT_EQ(product.right, (LtMatrix{true, 12, 4}));
}

TEST(MatchProduct, RowsThatMeetOneRightSideAreOneMatrix) {
  const Graph graph = Parsed(R"(%0 = Input() {name = "x", shape = [2, 3, 5, 4]}
    %1 = Input() {name = "w", shape = [4, 6]}
    %2 = MatMul(%0, %1)
    return "y" = %2)");
  const auto matches = Matches(graph);
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0].product.batch, 1);
  EXPECT_EQ(matches[0].product.m, 30);
}

TEST(MatchProduct, BatchesNeedOneStride) {
  const auto of = [](const std::string& a, const std::string& b) {
    return Matches(Parsed(Cat("%0 = Input() {name = \"a\", shape = [", a, "]}\n%1 = Input() {name = \"b\", shape = [", b,
                              "]}\n%2 = MatMul(%0, %1)\nreturn \"y\" = %2")));
  };
  const auto one_for_all = of("4, 5", "2, 3, 5, 6");
  ASSERT_EQ(one_for_all.size(), 1u);
  EXPECT_EQ(one_for_all[0].product.batch, 6);
  EXPECT_EQ(one_for_all[0].product.left.batch_stride, 0);
  EXPECT_EQ(one_for_all[0].product.right.batch_stride, 30);
  EXPECT_TRUE(of("2, 1, 4, 5", "1, 3, 5, 6").empty());
  EXPECT_TRUE(of("2, 1, 4, 5", "2, 3, 5, 6").empty());
  EXPECT_EQ(of("2, 1, 4, 5", "2, 1, 5, 6").size(), 1u);
  EXPECT_TRUE(of("2, 0, 5", "5, 6").empty());
  EXPECT_TRUE(of("2, 4, 0", "0, 6").empty());
}

/// The epilogues of a product of `dtype`, the node %4.
std::vector<std::string> Epilogues(const std::string& rest, const std::string& dtype = "f32",
                                   Numerics numerics = Numerics::kDefault) {
  const auto input = [&](int id, const char* shape) {
    return Cat("%", id, " = Input() {name = \"x", id, "\", dtype = \"", dtype, "\", shape = [", shape, "]}\n");
  };
  std::vector<std::string> found;
  const Graph graph =
      Parsed(Cat(input(0, "3, 5"), input(1, "5, 6"), input(2, "6"), input(3, "3, 6"), "%4 = MatMul(%0, %1)\n", rest));
  for (const ProductMatch& match : Matches(graph, numerics)) found.push_back(EpilogueName(match.product));
  return found;
}

TEST(MatchProduct, TakesTheEpilogueAlong) {
  EXPECT_THAT(Epilogues("%5 = Add(%2, %4)\n%6 = Add(%5, %3)\n%7 = Relu(%6)\nreturn \"y\" = %7"),
              ElementsAre("_residual_bias_relu", "_residual_bias", "_bias", ""));
  EXPECT_THAT(Epilogues("%5 = Gelu(%4) {approximate = \"tanh\"}\nreturn \"y\" = %5", "f16"), ElementsAre("_gelu", ""));
  EXPECT_THAT(Epilogues("%5 = Gelu(%4) {approximate = \"tanh\"}\nreturn \"y\" = %5", "bf16"), ElementsAre("_gelu", ""));
  // What comes after the activation is not part of it; nor is the other Gelu, a second vector, or what is read elsewhere.
  EXPECT_THAT(Epilogues("%5 = Relu(%4)\n%6 = Add(%5, %2)\nreturn \"y\" = %6"), ElementsAre("_relu", ""));
  EXPECT_THAT(Epilogues("%5 = Gelu(%4) {approximate = \"none\"}\nreturn \"y\" = %5", "f16"), ElementsAre(""));
  EXPECT_THAT(Epilogues("%5 = Add(%4, %2)\n%6 = Add(%5, %2)\nreturn \"y\" = %6"), ElementsAre("_bias", ""));
  EXPECT_THAT(Epilogues("%5 = Relu(%4)\nreturn \"y\" = %5, \"z\" = %4"), ElementsAre(""));
  EXPECT_THAT(Epilogues("%5 = Add(%4, %4)\nreturn \"y\" = %5"), ElementsAre(""));
  // The addition belongs to the summand that is computed last, and inputs are there from the start.
  EXPECT_THAT(Epilogues("%5 = Sin(%3)\n%6 = Add(%4, %5)\nreturn \"y\" = %6"), ElementsAre(""));
  EXPECT_THAT(Epilogues("%5 = Input() {name = \"r\", shape = [3, 6]}\n%6 = Add(%4, %5)\nreturn \"y\" = %6"),
              ElementsAre("_residual", ""));
}

TEST(MatchProduct, LeavesOutWhatIsNotAsExactAsOurs) {
  EXPECT_THAT(Epilogues("%5 = Gelu(%4) {approximate = \"tanh\"}\nreturn \"y\" = %5", "f32"), ElementsAre(""));
  EXPECT_THAT(Epilogues("%5 = Add(%4, %2)\n%6 = Relu(%5)\nreturn \"y\" = %6", "f32", Numerics::kStrict), ElementsAre("_bias", ""));
  EXPECT_THAT(Epilogues("%5 = Relu(%4)\nreturn \"y\" = %5", "bf16", Numerics::kStrict), ElementsAre(""));
  EXPECT_THAT(Epilogues("%5 = Relu(%4)\nreturn \"y\" = %5", "bf16", Numerics::kBf16), ElementsAre("_relu", ""));
}

constexpr int64_t kWorkspace = int64_t{32} << 20;

/// The fake driver and library, and the library that asks them.
struct Rig {
  FakeDriver driver;
  FakeCublasLt lt;
  CublasLtLibrary library{lt.table(), driver.table(), kWorkspace};
  const CallLibrary* libraries[1] = {&library};
};

void RunRandomProducts(Numerics numerics, uint64_t seeds) {
  const char* wanted = std::getenv("MENDEL_CUDA_SEEDS");
  if (wanted != nullptr) seeds = 100 * static_cast<uint64_t>(std::atoi(wanted));
  Rig rig;
  int declined = 0;
  std::vector<DeviceCase> cases;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const DeviceCase one = RandomProduct(seed, numerics);
    const int32_t product = ProductOf(one.graph);
    const std::vector<std::string> algorithms = LibraryAlgorithms(one.graph, product, numerics, rig.libraries);
    EXPECT_EQ(algorithms.empty(), Matches(one.graph).empty()) << one.told;
    declined += algorithms.empty() ? 1 : 0;
    for (const std::string& algorithm : algorithms) {
      auto program =
          LowerToDevice(one.graph, {.numerics = numerics, .algorithms = {{product, algorithm}}, .libraries = rig.libraries});
      ASSERT_TRUE(program.ok()) << program.status() << " " << one.told;
      // Those of stricter classes stay within their own bounds.
      const size_t suffix = algorithm.find('-');
      const Numerics bound =
          suffix == std::string::npos
              ? Numerics::kDefault
              : *ParseNumerics(algorithm.substr(suffix + 1, algorithm.find_first_of(":-", suffix + 1) - suffix - 1));
      cases.push_back({Cat(algorithm, ", ", one.told), one.graph, one.inputs, *std::move(program), bound});
    }
  }
  ASSERT_TRUE(rig.driver.Prepare(ModuleOf(cases)).ok());
  std::map<std::string, int> epilogues;
  for (const DeviceCase& one : cases) {
    const int64_t before = rig.lt.Products();
    EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "") << one.told;
    EXPECT_EQ(rig.lt.Products(), before + 2) << one.told;  // when it was loaded, and when it was replayed
    for (const DeviceLaunch& launch : one.program.launches) {
      const std::string& kernel = launch.info.kernel;
      if (launch.call != nullptr) ++epilogues[kernel.substr(std::min(kernel.size(), kernel.find('_')))];
    }
  }
  EXPECT_GE(epilogues.size(), numerics == Numerics::kDefault ? 11u : 6u);
  EXPECT_LT(declined, static_cast<int>(seeds) / 3);
  EXPECT_EQ(rig.lt.RoundedProducts() > 0, OperandRounding(numerics) > 0);
  std::printf("%llu products, %zu runs with %zu epilogues, %d without a stride for their batch\n",
              static_cast<unsigned long long>(seeds), cases.size(), epilogues.size(), declined);
}

TEST(CublasLt, RandomProductsAreRight) { RunRandomProducts(Numerics::kDefault, 80); }
TEST(CublasLt, RandomProductsInTf32AreRight) { RunRandomProducts(Numerics::kTf32, 30); }
TEST(CublasLt, RandomProductsInF16AreRight) { RunRandomProducts(Numerics::kF16, 20); }
TEST(CublasLt, RandomProductsInBf16AreRight) { RunRandomProducts(Numerics::kBf16, 30); }

/// Two products among kernels of ours: a view and a value that are read elsewhere, a workspace beside living values.
Graph Net() {
  return Parsed(R"(%0 = Input() {name = "x", shape = [2, 3, 8]}
    %1 = Constant() {symbol = "w", value = f32[8, 3]{1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8, 1, 0, 1, 0, 1, 0, 1, 0}}
    %2 = Constant() {symbol = "b", value = f32[3]{1, -2, 3}}
    %3 = Sin(%0)
    %4 = MatMul(%3, %1)
    %5 = Add(%4, %2)
    %6 = Relu(%5)
    %7 = Transpose(%6) {perm = [0, 2, 1]}
    %8 = MatMul(%6, %7)
    %9 = Softmax(%8) {axis = 2}
    %10 = Add(%9, %7)
    return "y" = %10)");
}

HostValue NetInput() {
  std::vector<double> values;
  for (int k = 0; k < 48; ++k) values.push_back(k % 11 - 5);
  return HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {2, 3, 8}}, values));
}

/// Two products of rounded operands with what is between them.
TEST(CublasLt, OperandsAreRoundedByTheKernelsBeforeAProduct) {
  Rig rig;
  const Graph graph = Parsed(R"(%0 = Input() {name = "x", shape = [3, 4]}
    %1 = Constant() {symbol = "w", value = f32[4, 2]{1, 2, 3, 4, 5, 6, 7, 8.0625}}
    %2 = Constant() {symbol = "b", value = f32[2]{1, 2.00390625}}
    %3 = MatMul(%0, %1)
    %4 = Add(%3, %2)
    %5 = Neg(%4)
    %6 = Transpose(%5) {perm = [1, 0]}
    %7 = MatMul(%6, %0)
    return "y" = %7)");
  const std::vector<double> values(12, 1 + 0x1p-8 - 0x1p-12);
  DeviceCase one{"", graph, {HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {3, 4}}, values))}, {}, Numerics::kBf16};
  auto program = LowerToDevice(
      graph,
      {.numerics = Numerics::kBf16, .algorithms = {{3, "cublaslt-bf16"}, {7, "cublaslt-bf16:1"}}, .libraries = rig.libraries});
  ASSERT_TRUE(program.ok()) << program.status();
  one.program = *std::move(program);
  std::vector<std::string> launches;
  for (const DeviceLaunch& launch : one.program.launches) {
    launches.push_back(launch.call == nullptr ? "kernel" : launch.info.kernel);
    for (const int32_t node : launch.info.nodes) launches.back() += Cat(" ", graph.node(node).op->name);
  }
  // x is rounded once for both; what computes the second operand rounds it, too, and it is read turned; the weights are rounded
  // when stored.
  EXPECT_THAT(launches, ElementsAre("kernel", "cublaslt-bf16_bias MatMul Add", "kernel Neg", "cublaslt-bf16:1 MatMul Transpose"));
  EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "");
  EXPECT_EQ(rig.lt.RoundedProducts(), 4);
  one.numerics = Numerics::kTf32;
  EXPECT_THAT(FailureOn(rig.driver.table(), &TextImage, one), HasSubstr("output 0: element")) << "further off than TF32 may be";
}

TEST(CublasLt, MoreAlgorithmsAreOfferedThanNamed) {
  Rig rig;
  const CublasLtLibrary library(rig.lt.table(), rig.driver.table(), kWorkspace, 1);
  const CallLibrary* const libraries[] = {&library};
  EXPECT_THAT(LibraryAlgorithms(Net(), 4, Numerics::kDefault, libraries), ElementsAre("cublaslt"));
  EXPECT_TRUE(LowerToDevice(Net(), {.algorithms = {{4, "cublaslt:2"}}, .libraries = libraries}).ok()) << "whatever is offered";
}

TEST(CublasLt, AnF16OverflowIsInfinite) {
  Rig rig;
  const Graph graph = Parsed(R"(%0 = Input() {name = "a", shape = [1, 1]}
    %1 = Input() {name = "b", shape = [1, 1]}
    %2 = MatMul(%0, %1)
    return "y" = %2)");
  const auto input = [](double value) {
    return HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {1, 1}}, std::vector<double>{value}));
  };
  const auto failure = [&](const std::string& algorithm, Numerics numerics) -> std::string {
    auto program = LowerToDevice(graph, {.numerics = numerics, .algorithms = {{2, algorithm}}, .libraries = rig.libraries});
    EXPECT_TRUE(program.ok()) << program.status();
    return FailureOn(rig.driver.table(), &TextImage, {"", graph, {input(65536), input(2)}, *std::move(program), numerics});
  };
  EXPECT_EQ(failure("cublaslt-f16", Numerics::kF16), "output 0: element 0 is inf, not 131072");
  EXPECT_EQ(failure("cublaslt-bf16", Numerics::kBf16), "");
  EXPECT_EQ(failure("cublaslt-tf32", Numerics::kF16), "");
}

/// That a class is exceeded is seen: what TF32 drops is more than other classes may be wrong by.
TEST(CublasLt, Tf32IsOfferedWhereItIsAllowedAlone) {
  Rig rig;
  const Graph graph = Parsed(R"(%0 = Input() {name = "a", shape = [2, 3]}
    %1 = Input() {name = "b", shape = [3, 2]}
    %2 = MatMul(%0, %1)
    return "y" = %2)");
  const auto input = [](const Shape& shape) {
    return HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, shape}, std::vector<double>(6, 1 + 0x1p-11 - 0x1p-20)));
  };
  const auto failure = [&](const std::string& algorithm, Numerics bound) -> std::string {
    auto program = LowerToDevice(graph, {.numerics = Numerics::kTf32, .algorithms = {{2, algorithm}}, .libraries = rig.libraries});
    EXPECT_TRUE(program.ok()) << program.status();
    return FailureOn(rig.driver.table(), &TextImage, {"", graph, {input({2, 3}), input({3, 2})}, *std::move(program), bound});
  };
  EXPECT_EQ(failure("cublaslt:1", Numerics::kDefault), "");
  EXPECT_EQ(rig.lt.RoundedProducts(), 0);
  EXPECT_EQ(failure("cublaslt-tf32:1", Numerics::kTf32), "");
  EXPECT_THAT(failure("cublaslt-tf32", Numerics::kDefault), HasSubstr("output 0: element 0 is 3, not 3.00"));
  EXPECT_THAT(LibraryAlgorithms(graph, 2, Numerics::kTf32, rig.libraries),
              ElementsAre("cublaslt", "cublaslt:1", "cublaslt:2", "cublaslt-tf32", "cublaslt-tf32:1", "cublaslt-tf32:2"));
  for (const Numerics stricter : {Numerics::kStrict, Numerics::kDefault, Numerics::kHigh}) {
    EXPECT_THAT(LibraryAlgorithms(graph, 2, stricter, rig.libraries), ElementsAre("cublaslt", "cublaslt:1", "cublaslt:2"));
    const auto refused =
        LowerToDevice(graph, {.numerics = stricter, .algorithms = {{2, "cublaslt-tf32"}}, .libraries = rig.libraries});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.status().message()),
                HasSubstr(Cat("(MatMul 2) has no algorithm 'cublaslt-tf32' under numerics ", NumericsName(stricter))));
  }
}

std::string NetFailure(Rig& rig) {
  auto program = LowerToDevice(Net(), {.algorithms = {{4, "cublaslt"}, {8, "cublaslt:2"}}, .libraries = rig.libraries});
  if (!program.ok()) return std::string(program.status().message());
  const DeviceCase one{"net", Net(), {NetInput()}, *std::move(program)};
  return FailureOn(rig.driver.table(), &TextImage, one);
}

TEST(CublasLt, ProductsAmongKernels) {
  Rig rig;
  const auto program = LowerToDevice(Net(), {.algorithms = {{4, "cublaslt"}, {8, "cublaslt:2"}}, .libraries = rig.libraries});
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<std::string> calls;
  for (const DeviceLaunch& launch : program->launches) {
    if (launch.call != nullptr) calls.push_back(launch.info.kernel);
  }
  EXPECT_THAT(calls, ElementsAre("cublaslt_bias_relu", "cublaslt:2"));
  EXPECT_GE(program->arena_bytes, 1 << 20) << "the workspace of the third algorithm";
  EXPECT_LT(program->arena_bytes, (1 << 20) + 8192);
  ASSERT_TRUE(rig.driver.Prepare(program->ModuleText()).ok());
  EXPECT_EQ(NetFailure(rig), "");
}

TEST(CublasLt, AStepIsNamedAfterItsProduct) {
  Rig rig;
  const auto program = LowerToDevice(Heads(), {.algorithms = {{6, "cublaslt:1"}}, .libraries = rig.libraries});
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->launches.size(), 1u);
  EXPECT_EQ(program->launches[0].info.name, "MatMul 6");
  EXPECT_THAT(program->launches[0].info.nodes, ElementsAre(6, 2, 3, 4, 5));
}

TEST(CublasLt, WhatAProductReadsInPlaceLiesInMemory) {
  // The product reads the slice through the transposition, which others read too: no kernel may compute the slice where it is read.
  const Graph graph = Parsed(R"(%0 = Input() {name = "a", shape = [3, 4]}
    %1 = Input() {name = "x", shape = [5, 6]}
    %2 = Slice(%1) {ends = [5, 5], starts = [0, 1], steps = [1, 1]}
    %3 = Transpose(%2) {perm = [1, 0]}
    %4 = MatMul(%0, %3)
    %5 = Sin(%3)
    return "y" = %4, "z" = %5)");
  std::vector<double> a, x;
  for (int k = 0; k < 12; ++k) a.push_back(k % 5 - 2);
  for (int k = 0; k < 30; ++k) x.push_back(k % 7 - 3);
  Rig rig;
  const std::vector<std::string> algorithms = LibraryAlgorithms(graph, 4, Numerics::kDefault, rig.libraries);
  EXPECT_THAT(algorithms, ElementsAre("cublaslt", "cublaslt:1", "cublaslt:2"));
  for (const std::string& algorithm : algorithms) {
    for (const bool reuse_memory : {false, true}) {
      auto program =
          LowerToDevice(graph, {.reuse_memory = reuse_memory, .algorithms = {{4, algorithm}}, .libraries = rig.libraries});
      ASSERT_TRUE(program.ok()) << program.status();
      const DeviceCase one{"",
                           graph,
                           {HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {3, 4}}, a)),
                            HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {5, 6}}, x))},
                           *std::move(program)};
      ASSERT_TRUE(rig.driver.Prepare(one.program.ModuleText()).ok());
      EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "") << algorithm;
    }
  }
}

TEST(CublasLt, StrictKeepsWhatIsNoNumber) {
  const Graph graph = Parsed(R"(%0 = Input() {name = "a", shape = [2, 2]}
    %1 = Input() {name = "b", shape = [2, 2]}
    %2 = MatMul(%0, %1)
    %3 = Relu(%2)
    return "y" = %3)");
  const std::vector<double> a = {1, 2, std::nan(""), 4}, b = {1, -1, 2, -2};
  const auto input = [](const std::vector<double>& values) {
    return HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {2, 2}}, values));
  };
  Rig rig;
  const auto failure = [&](Numerics numerics) -> std::string {
    auto program = LowerToDevice(graph, {.numerics = numerics, .algorithms = {{2, "cublaslt"}}, .libraries = rig.libraries});
    EXPECT_TRUE(program.ok()) << program.status();
    return FailureOn(rig.driver.table(), &TextImage, {"", graph, {input(a), input(b)}, *std::move(program)});
  };
  EXPECT_EQ(failure(Numerics::kStrict), "");
  EXPECT_EQ(failure(Numerics::kDefault), "output 0: element 2 is 0, not nan") << "of cuBLASLt's own Relu";
}

/// Net() by a library of its own, run once; the steps tell what was taken along.
struct NetRun {
  FakeDriver& driver;
  const CublasLt& lt;
  int64_t calls_of_lowering = 0;
  std::string first_call = "";

  absl::StatusOr<DeviceProgram> Lower(const CublasLtLibrary& library) {
    const CallLibrary* const libraries[] = {&library};
    return LowerToDevice(Net(), {.algorithms = {{4, "cublaslt"}, {8, "cublaslt:2"}}, .libraries = libraries});
  }
  absl::Status operator()() {
    const CublasLtLibrary library(lt, driver.table(), kWorkspace);
    MENDEL_ASSIGN_OR_RETURN(DeviceProgram program, Lower(library));
    calls_of_lowering = driver.Calls();
    for (const DeviceLaunch& launch : program.launches) {
      if (launch.call != nullptr && launch.info.nodes[0] == 4) first_call = launch.info.kernel;
    }
    MENDEL_ASSIGN_OR_RETURN(const auto executable, MakeExecutable(driver.table(), std::move(program), &TextImage));
    return RunOnTensors(*executable, Net(), std::vector<Tensor>{NetInput().ToTensor()}).status();
  }
};

/// With every length of the first product's epilogue, so that nothing is compiled later on.
void PrepareNet(FakeDriver& driver, FakeCublasLt& lt) {
  const uint32_t bias = cublaslt::kBias;
  for (const auto& limits : {std::map<uint32_t, int>{}, {{cublaslt::kRelu | bias, 0}}, {{cublaslt::kRelu | bias, 0}, {bias, 0}}}) {
    for (const auto& [epilogue, most] : limits) lt.LimitProposals(epilogue, most);
    const CublasLtLibrary library(lt.table(), driver.table(), kWorkspace);
    const auto program = NetRun{driver, lt.table()}.Lower(library);
    ASSERT_TRUE(program.ok()) << program.status();
    ASSERT_TRUE(driver.Prepare(program->ModuleText()).ok());
    for (const auto& [epilogue, most] : limits) lt.LimitProposals(epilogue, static_cast<int>(kMostOffered));
  }
}

TEST(CublasLt, EveryCallMayFail) {
  FakeDriver driver;
  FakeCublasLt lt;
  PrepareNet(driver, lt);
  driver.FailAt(0);
  NetRun whole{driver, lt.table()};
  ASSERT_TRUE(whole().ok());
  ASSERT_EQ(whole.first_call, "cublaslt_bias_relu");
  const int64_t calls = driver.Calls();
  std::set<std::string> failed, taken;
  for (int64_t call = 1; call <= calls; ++call) {
    for (const int error : {cublaslt::kAllocationFailed, cublaslt::kNotSupported, 999}) {
      driver.FailAt(call, error);
      NetRun run{driver, lt.table()};
      const absl::Status status = run();
      const std::string entry = driver.FailedCall();
      EXPECT_EQ(driver.Leaks(), "") << call << " " << entry;
      EXPECT_EQ(lt.Leaks(), "") << call << " " << entry;
      if (!entry.starts_with("cublasLt")) continue;  // executable_test.cc
      failed.insert(entry);
      // No heuristics for a product is no algorithm for it.
      const bool none = entry == "cublasLtMatmulAlgoGetHeuristic" && error == cublaslt::kNotSupported;
      if (status.ok()) {
        // A length of the epilogue that cuBLASLt errs for is left out; that there is no memory is told.
        const bool left_out = call <= whole.calls_of_lowering && entry != "cublasLtCreate" && error != cublaslt::kAllocationFailed;
        EXPECT_TRUE(left_out || entry.ends_with("Destroy")) << call << " " << entry << " " << error;
        taken.insert(run.first_call);
        continue;
      }
      EXPECT_FALSE(entry.ends_with("Destroy")) << call << " " << entry;
      EXPECT_THAT(std::string(status.message()), HasSubstr(none ? "has no algorithm for" : entry));
      const absl::StatusCode expected =
          none ? absl::StatusCode::kInvalidArgument
               : (error == cublaslt::kAllocationFailed
                      ? absl::StatusCode::kResourceExhausted
                      : (error == cublaslt::kNotSupported ? absl::StatusCode::kUnimplemented : absl::StatusCode::kInternal));
      EXPECT_EQ(status.code(), expected) << entry << " " << status;
    }
  }
  EXPECT_EQ(failed.size(), 13u);  // the whole table but versions and texts
  EXPECT_THAT(taken, ElementsAre("cublaslt_bias", "cublaslt_bias_relu"));
  std::printf("%lld calls, each failed once with each of three errors\n", static_cast<long long>(calls));
}

TEST(CublasLt, AnErrorOfOneEpilogueLeavesTheOthers) {
  Rig rig;
  const auto offered = [&](int64_t failing_call) {
    const CublasLtLibrary library(rig.lt.table(), rig.driver.table(), kWorkspace);
    const CallLibrary* const libraries[] = {&library};
    rig.driver.FailAt(failing_call, 999);
    return LibraryAlgorithms(Net(), 4, Numerics::kDefault, libraries).size();
  };
  EXPECT_EQ(offered(0), 3u);
  const int64_t calls = rig.driver.Calls();
  std::vector<size_t> by_heuristic;
  for (int64_t call = 1; call <= calls; ++call) {
    const size_t count = offered(call);
    if (rig.driver.FailedCall() == "cublasLtMatmulAlgoGetHeuristic") by_heuristic.push_back(count);
  }
  EXPECT_THAT(by_heuristic, ElementsAre(3, 3, 0)) << "with bias and Relu, with bias, alone";
}

TEST(CublasLt, AlgorithmsAreThoseThatAnyPartOfTheEpilogueHas) {
  Rig rig;
  const Graph graph = Net();
  const auto offered = [&] { return LibraryAlgorithms(graph, 4, Numerics::kDefault, rig.libraries); };
  const auto fresh = [&] {
    const CublasLtLibrary library(rig.lt.table(), rig.driver.table(), kWorkspace);
    const CallLibrary* const libraries[] = {&library};
    return LibraryAlgorithms(graph, 4, Numerics::kDefault, libraries);
  };
  EXPECT_THAT(offered(), ElementsAre("cublaslt", "cublaslt:1", "cublaslt:2"));
  rig.lt.LimitProposals(cublaslt::kBias, 2);
  EXPECT_THAT(offered(), ElementsAre("cublaslt", "cublaslt:1", "cublaslt:2")) << "asked once";
  EXPECT_THAT(fresh(), ElementsAre("cublaslt", "cublaslt:1"));
  // An epilogue that there is none for is computed by a kernel of ours.
  rig.lt.LimitProposals(cublaslt::kBias | cublaslt::kRelu, 0);
  const CublasLtLibrary library(rig.lt.table(), rig.driver.table(), kWorkspace);
  const CallLibrary* const libraries[] = {&library};
  const auto program = LowerToDevice(graph, {.algorithms = {{4, "cublaslt:1"}}, .libraries = libraries});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(std::count_if(program->launches.begin(), program->launches.end(),
                          [](const DeviceLaunch& launch) { return launch.info.kernel == "cublaslt:1_bias"; }),
            1);
  rig.lt.LimitProposals(cublaslt::kNoEpilogue, 0);
  EXPECT_THAT(fresh(), ElementsAre());
}

TEST(CublasLt, RefusesWhatIsNoneOfItsAlgorithms) {
  Rig rig;
  const auto refusal = [&](int32_t node, const std::string& algorithm) {
    const auto program = LowerToDevice(Net(), {.algorithms = {{node, algorithm}}, .libraries = rig.libraries});
    EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument) << algorithm;
    return std::string(program.status().message());
  };
  EXPECT_THAT(refusal(4, "cublaslt:3"),
              HasSubstr("cublaslt 13.1.0, workspace 32 MiB has 3 algorithms for node '' (MatMul 4): 'cublaslt:3'"));
  for (const char* name : {"cublaslt:", "cublaslt:0", "cublaslt:-1", "cublaslt:1x", "cublaslt:99999999999"}) {
    EXPECT_THAT(refusal(4, name), HasSubstr("is none of them"));
  }
  EXPECT_THAT(refusal(9, "cublaslt"), HasSubstr("(Softmax 9) is no product that cuBLASLt makes"));
}

TEST(CublasLt, ProductsOfOtherTypesAreNotOffered) {
  Rig rig;
  const Graph graph = Parsed(R"(%0 = Input() {name = "a", dtype = "f64", shape = [3, 5]}
    %1 = Input() {name = "b", dtype = "f64", shape = [5, 6]}
    %2 = MatMul(%0, %1)
    return "y" = %2)");
  EXPECT_THAT(LibraryAlgorithms(graph, 2, Numerics::kDefault, rig.libraries), ElementsAre());
}

TEST(CublasLt, DescriptorsNeedNoDevice) {
  const auto lt = CublasLt::Get();
  if (!lt.ok()) {
    EXPECT_FALSE(std::filesystem::exists("/usr/local/cuda/lib64/libcublasLt.so.13")) << lt.status();
    GTEST_SKIP() << lt.status();
  }
  std::printf("cuBLASLt %s at %s\n", CublasLtVersionText((*lt)->version).c_str(), (*lt)->path.c_str());
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const DeviceCase one = RandomProduct(seed, Numerics::kDefault);
    for (ProductMatch match : Matches(one.graph)) {
      for (const DType operands : {match.product.dtype, DType::kF16, DType::kBF16}) {
        match.product.operands = operands;
        match.product.tf32 = operands == DType::kF32 && seed % 2 == 0;
        const auto described = LtDescriptors::Make(**lt, match.product);
        EXPECT_TRUE(described.ok()) << described.status() << " " << one.told;
      }
    }
  }
  const absl::Status refused = (*lt)->Check(cublaslt::kNotSupported, "a product");
  EXPECT_TRUE(absl::IsUnimplemented(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("CUBLAS_STATUS_NOT_SUPPORTED: a product"));
}

}  // namespace
}  // namespace mendel::cuda
