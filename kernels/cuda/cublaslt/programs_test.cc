// Tests of random products by the fake cuBLASLt in all numerics classes, against their graphs.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cublaslt/library.h"
#include "kernels/cuda/cublaslt/library_case.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_cublaslt.h"
#include "kernels/cuda/testing/fake/fake_driver.h"
#include "kernels/cuda/testing/product_case.h"

namespace mendel::cuda {
namespace {

using cublaslt_case::Matches;
using cublaslt_case::Parsed;
using cublaslt_case::ProductOf;
using cublaslt_case::Rig;
using testing::ElementsAre;
using testing::HasSubstr;

void RunRandomProducts(Numerics numerics, uint64_t seeds) {
  const char* wanted = std::getenv("MENDEL_CUDA_SEEDS");
  if (wanted != nullptr) seeds = 100 * static_cast<uint64_t>(std::atoi(wanted));
  Rig rig;
  int declined = 0;
  std::vector<DeviceCase> cases;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const DeviceCase one = RandomProduct(seed, numerics);
    const int32_t product = ProductOf(one.graph);
    const std::vector<std::string> algorithms =
        LibraryAlgorithms(one.graph, product, numerics, rig.libraries);
    EXPECT_EQ(algorithms.empty(), Matches(one.graph).empty()) << one.description;
    declined += algorithms.empty() ? 1 : 0;
    for (const std::string& algorithm : algorithms) {
      auto program = LowerToDevice(
          one.graph,
          {.numerics = numerics, .algorithms = {{product, algorithm}}, .libraries = rig.libraries});
      ASSERT_TRUE(program.ok()) << program.status() << " " << one.description;
      // Algorithms of stricter classes stay within their own bounds.
      const size_t suffix = algorithm.find('-');
      const Numerics bound =
          suffix == std::string::npos
              ? Numerics::kDefault
              : *ParseNumerics(algorithm.substr(
                    suffix + 1, algorithm.find_first_of(":-", suffix + 1) - suffix - 1));
      cases.push_back({Cat(algorithm, ", ", one.description), one.graph, one.inputs,
                       *std::move(program), bound});
    }
  }
  ASSERT_TRUE(rig.driver.Prepare(ModuleOf(cases)).ok());
  std::map<std::string, int> epilogues;
  for (const DeviceCase& one : cases) {
    const int64_t before = rig.lt.Products();
    EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "") << one.description;
    EXPECT_EQ(rig.lt.Products(), before + 2)
        << one.description;  // when it was loaded, and when it was replayed
    for (const DeviceLaunch& launch : one.program.launches) {
      const std::string& kernel = launch.info.kernel;
      if (launch.call != nullptr)
        ++epilogues[kernel.substr(std::min(kernel.size(), kernel.find('_')))];
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

/// Two products of rounded operands, and the kernels between them.
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
  DeviceCase one{"",
                 graph,
                 {HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {3, 4}}, values))},
                 {},
                 Numerics::kBf16};
  auto program = LowerToDevice(graph, {.numerics = Numerics::kBf16,
                                       .algorithms = {{3, "cublaslt-bf16"}, {7, "cublaslt-bf16:1"}},
                                       .libraries = rig.libraries});
  ASSERT_TRUE(program.ok()) << program.status();
  one.program = *std::move(program);
  std::vector<std::string> launches;
  for (const DeviceLaunch& launch : one.program.launches) {
    launches.push_back(launch.call == nullptr ? "kernel" : launch.info.kernel);
    for (const int32_t node : launch.info.nodes)
      launches.back() += Cat(" ", graph.node(node).op->name);
  }
  // x is rounded once for both. The kernel of the second operand rounds it, too, and the product
  // reads it transposed. The weights are rounded when stored.
  EXPECT_THAT(launches, ElementsAre("kernel", "cublaslt-bf16_bias MatMul Add", "kernel Neg",
                                    "cublaslt-bf16:1 MatMul Transpose"));
  EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "");
  EXPECT_EQ(rig.lt.RoundedProducts(), 4);
  one.numerics = Numerics::kTf32;
  EXPECT_THAT(FailureOn(rig.driver.table(), &TextImage, one), HasSubstr("output 0: element"))
      << "further off than TF32 may be";
}

TEST(CublasLt, AnF16OverflowIsInfinite) {
  Rig rig;
  const Graph graph = Parsed(R"(%0 = Input() {name = "a", shape = [1, 1]}
    %1 = Input() {name = "b", shape = [1, 1]}
    %2 = MatMul(%0, %1)
    return "y" = %2)");
  const auto input = [](double value) {
    return HostValue::FromTensor(
        Tensor::FromDoubles({DType::kF32, {1, 1}}, std::vector<double>{value}));
  };
  const auto failure = [&](const std::string& algorithm, Numerics numerics) -> std::string {
    auto program = LowerToDevice(
        graph, {.numerics = numerics, .algorithms = {{2, algorithm}}, .libraries = rig.libraries});
    EXPECT_TRUE(program.ok()) << program.status();
    return FailureOn(rig.driver.table(), &TextImage,
                     {"", graph, {input(65536), input(2)}, *std::move(program), numerics});
  };
  EXPECT_EQ(failure("cublaslt-f16", Numerics::kF16), "output 0: element 0 is inf, not 131072");
  EXPECT_EQ(failure("cublaslt-bf16", Numerics::kBf16), "");
  EXPECT_EQ(failure("cublaslt-tf32", Numerics::kF16), "");
}

/// An exceeded bound is detected: TF32 drops more than other classes may be wrong by.
TEST(CublasLt, Tf32IsOfferedWhereItIsAllowedAlone) {
  Rig rig;
  const Graph graph = Parsed(R"(%0 = Input() {name = "a", shape = [2, 3]}
    %1 = Input() {name = "b", shape = [3, 2]}
    %2 = MatMul(%0, %1)
    return "y" = %2)");
  const auto input = [](const Shape& shape) {
    return HostValue::FromTensor(
        Tensor::FromDoubles({DType::kF32, shape}, std::vector<double>(6, 1 + 0x1p-11 - 0x1p-20)));
  };
  const auto failure = [&](const std::string& algorithm, Numerics bound) -> std::string {
    auto program = LowerToDevice(
        graph,
        {.numerics = Numerics::kTf32, .algorithms = {{2, algorithm}}, .libraries = rig.libraries});
    EXPECT_TRUE(program.ok()) << program.status();
    return FailureOn(rig.driver.table(), &TextImage,
                     {"", graph, {input({2, 3}), input({3, 2})}, *std::move(program), bound});
  };
  EXPECT_EQ(failure("cublaslt:1", Numerics::kDefault), "");
  EXPECT_EQ(rig.lt.RoundedProducts(), 0);
  EXPECT_EQ(failure("cublaslt-tf32:1", Numerics::kTf32), "");
  EXPECT_THAT(failure("cublaslt-tf32", Numerics::kDefault),
              HasSubstr("output 0: element 0 is 3, not 3.00"));
  EXPECT_THAT(LibraryAlgorithms(graph, 2, Numerics::kTf32, rig.libraries),
              ElementsAre("cublaslt", "cublaslt:1", "cublaslt:2", "cublaslt-tf32",
                          "cublaslt-tf32:1", "cublaslt-tf32:2"));
  for (const Numerics stricter : {Numerics::kStrict, Numerics::kDefault, Numerics::kHigh}) {
    EXPECT_THAT(LibraryAlgorithms(graph, 2, stricter, rig.libraries),
                ElementsAre("cublaslt", "cublaslt:1", "cublaslt:2"));
    const auto refused = LowerToDevice(
        graph,
        {.numerics = stricter, .algorithms = {{2, "cublaslt-tf32"}}, .libraries = rig.libraries});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.status().message()),
                HasSubstr(Cat("(MatMul 2) has no algorithm 'cublaslt-tf32' under numerics ",
                              NumericsName(stricter))));
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
    auto program = LowerToDevice(
        graph, {.numerics = numerics, .algorithms = {{2, "cublaslt"}}, .libraries = rig.libraries});
    EXPECT_TRUE(program.ok()) << program.status();
    return FailureOn(rig.driver.table(), &TextImage,
                     {"", graph, {input(a), input(b)}, *std::move(program)});
  };
  EXPECT_EQ(failure(Numerics::kStrict), "");
  EXPECT_EQ(failure(Numerics::kDefault), "output 0: element 2 is 0, not nan")
      << "of cuBLASLt's own Relu";
}

}  // namespace
}  // namespace mendel::cuda
