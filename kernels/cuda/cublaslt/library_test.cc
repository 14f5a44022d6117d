// Tests of the proposals of cuBLASLt that become algorithms of products, and of whole plans with
// them on the fake library.

#include "kernels/cuda/cublaslt/library.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cublaslt/library_case.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_cublaslt.h"
#include "kernels/cuda/testing/fake/fake_driver.h"
#include "kernels/cuda/testing/product_case.h"

namespace mendel::cuda {
namespace {

using cublaslt_case::Heads;
using cublaslt_case::kWorkspace;
using cublaslt_case::Matches;
using cublaslt_case::Net;
using cublaslt_case::NetInput;
using cublaslt_case::Parsed;
using cublaslt_case::Rig;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(CublasLt, MoreAlgorithmsAreOfferedThanNamed) {
  Rig rig;
  const CublasLtLibrary library(rig.lt.table(), rig.driver.table(), kWorkspace, 1);
  const CallLibrary* const libraries[] = {&library};
  EXPECT_THAT(LibraryAlgorithms(Net(), 4, Numerics::kDefault, libraries), ElementsAre("cublaslt"));
  EXPECT_TRUE(
      LowerToDevice(Net(), {.algorithms = {{4, "cublaslt:2"}}, .libraries = libraries}).ok())
      << "whatever is offered";
}

std::string NetFailure(Rig& rig) {
  auto program = LowerToDevice(
      Net(), {.algorithms = {{4, "cublaslt"}, {8, "cublaslt:2"}}, .libraries = rig.libraries});
  if (!program.ok()) return std::string(program.status().message());
  const DeviceCase one{"net", Net(), {NetInput()}, *std::move(program)};
  return FailureOn(rig.driver.table(), &TextImage, one);
}

TEST(CublasLt, ProductsAmongKernels) {
  Rig rig;
  const auto program = LowerToDevice(
      Net(), {.algorithms = {{4, "cublaslt"}, {8, "cublaslt:2"}}, .libraries = rig.libraries});
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
  const auto program =
      LowerToDevice(Heads(), {.algorithms = {{6, "cublaslt:1"}}, .libraries = rig.libraries});
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->launches.size(), 1u);
  EXPECT_EQ(program->launches[0].info.name, "MatMul 6");
  EXPECT_THAT(program->launches[0].info.nodes, ElementsAre(6, 2, 3, 4, 5));
}

TEST(CublasLt, WhatAProductReadsInPlaceLiesInMemory) {
  // The product reads the slice through the transposition, which others read too: no kernel may
  // compute the slice where it is read.
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
  const std::vector<std::string> algorithms =
      LibraryAlgorithms(graph, 4, Numerics::kDefault, rig.libraries);
  EXPECT_THAT(algorithms, ElementsAre("cublaslt", "cublaslt:1", "cublaslt:2"));
  for (const std::string& algorithm : algorithms) {
    for (const bool reuse_memory : {false, true}) {
      auto program = LowerToDevice(graph, {.reuse_memory = reuse_memory,
                                           .algorithms = {{4, algorithm}},
                                           .libraries = rig.libraries});
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

TEST(CublasLt, AlgorithmsAreThoseThatAnyPartOfTheEpilogueHas) {
  Rig rig;
  const Graph graph = Net();
  const auto offered = [&] {
    return LibraryAlgorithms(graph, 4, Numerics::kDefault, rig.libraries);
  };
  const auto fresh = [&] {
    const CublasLtLibrary library(rig.lt.table(), rig.driver.table(), kWorkspace);
    const CallLibrary* const libraries[] = {&library};
    return LibraryAlgorithms(graph, 4, Numerics::kDefault, libraries);
  };
  EXPECT_THAT(offered(), ElementsAre("cublaslt", "cublaslt:1", "cublaslt:2"));
  rig.lt.LimitProposals(cublaslt::kBias, 2);
  EXPECT_THAT(offered(), ElementsAre("cublaslt", "cublaslt:1", "cublaslt:2")) << "asked once";
  EXPECT_THAT(fresh(), ElementsAre("cublaslt", "cublaslt:1"));
  // A native kernel computes an epilogue that no algorithm has.
  rig.lt.LimitProposals(cublaslt::kBias | cublaslt::kRelu, 0);
  const CublasLtLibrary library(rig.lt.table(), rig.driver.table(), kWorkspace);
  const CallLibrary* const libraries[] = {&library};
  const auto program =
      LowerToDevice(graph, {.algorithms = {{4, "cublaslt:1"}}, .libraries = libraries});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(std::count_if(
                program->launches.begin(), program->launches.end(),
                [](const DeviceLaunch& launch) { return launch.info.kernel == "cublaslt:1_bias"; }),
            1);
  rig.lt.LimitProposals(cublaslt::kNoEpilogue, 0);
  EXPECT_THAT(fresh(), ElementsAre());
}

TEST(CublasLt, RefusesWhatIsNoneOfItsAlgorithms) {
  Rig rig;
  const auto refusal = [&](int32_t node, const std::string& algorithm) {
    const auto program =
        LowerToDevice(Net(), {.algorithms = {{node, algorithm}}, .libraries = rig.libraries});
    EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument) << algorithm;
    return std::string(program.status().message());
  };
  EXPECT_THAT(refusal(4, "cublaslt:3"),
              HasSubstr("cublaslt 13.1.0, workspace 32 MiB has 3 algorithms for node '' (MatMul "
                        "4): 'cublaslt:3'"));
  for (const char* name :
       {"cublaslt:", "cublaslt:0", "cublaslt:-1", "cublaslt:1x", "cublaslt:99999999999"}) {
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
  std::printf("cuBLASLt %s at %s\n", CublasLtVersionText((*lt)->version).c_str(),
              (*lt)->path.c_str());
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const DeviceCase one = RandomProduct(seed, Numerics::kDefault);
    for (ProductMatch match : Matches(one.graph)) {
      for (const DType operands : {match.product.dtype, DType::kF16, DType::kBF16}) {
        match.product.operands = operands;
        match.product.tf32 = operands == DType::kF32 && seed % 2 == 0;
        const auto described = LtDescriptors::Make(**lt, match.product);
        EXPECT_TRUE(described.ok()) << described.status() << " " << one.description;
      }
    }
  }
  const absl::Status refused = (*lt)->Check(cublaslt::kNotSupported, "a product");
  EXPECT_TRUE(absl::IsUnimplemented(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("CUBLAS_STATUS_NOT_SUPPORTED: a product"));
}

}  // namespace
}  // namespace mendel::cuda
