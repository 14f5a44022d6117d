#include <algorithm>

#include "base/random.h"
#include "graph/random_graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/simd/native_isa.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

/// The kernels of the default choice.
std::vector<std::string> KernelsOf(GraphBuilder& builder) {
  const Graph graph = *builder.Build();
  Rng rng(1);
  return ExpectMatches(graph, RandomInputs(rng, graph), {});
}

/// True when some kernel of the default choice copies its operands in every call.
bool UsesGemm(GraphBuilder& builder) {
  const std::vector<std::string> kernels = KernelsOf(builder);
  return std::any_of(kernels.begin(), kernels.end(), [](const std::string& name) {
    return name.find("gemm") != std::string::npos && name.find("brg") == std::string::npos;
  });
}

bool UsesPointwise(GraphBuilder& builder) {
  const std::vector<std::string> kernels = KernelsOf(builder);
  return std::any_of(kernels.begin(), kernels.end(),
                     [](const std::string& name) { return name.starts_with("pointwise-own"); });
}

TEST(DefaultKernel, IsNoGemmForAWideWindow) {
  if (NativeIsaHere() == NativeIsa::kNone) GTEST_SKIP() << "no native kernels here";
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {1, 16, 20, 60}});
  const ValueId w = builder.Constant(MixedWeights({16, 16, 3, 39}), "w");
  builder.Output("y", *builder.Add("Conv", {x, w},
                                   {{"strides", Shape{1, 1}},
                                    {"dilations", Shape{1, 1}},
                                    {"pads", Shape{1, 19, 1, 19}},
                                    {"group", int64_t{1}}}));
  EXPECT_FALSE(UsesGemm(builder));
}

TEST(DefaultKernel, IsNoGemmForAWideDepthwiseWindow) {
  if (NativeIsaHere() == NativeIsa::kNone) GTEST_SKIP() << "no native kernels here";
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {1, 32, 14, 14}});
  const ValueId w = builder.Constant(MixedWeights({32, 1, 27, 27}), "w");
  builder.Output("y", *builder.Add("Conv", {x, w},
                                   {{"strides", Shape{1, 1}},
                                    {"dilations", Shape{1, 1}},
                                    {"pads", Shape{13, 13, 13, 13}},
                                    {"group", int64_t{32}}}));
  EXPECT_FALSE(UsesGemm(builder));
}

TEST(DefaultKernel, IsNoGemmForFewRows) {
  if (NativeIsaHere() == NativeIsa::kNone) GTEST_SKIP() << "no native kernels here";
  const bool avx2 = NativeIsaHere() == NativeIsa::kAvx2;
  for (const int64_t rows : {2, 20, 64, avx2 ? 65 : 3, avx2 ? 512 : 4}) {
    GraphBuilder builder;
    const ValueId x = builder.Input("x", {DType::kF32, {rows, 96}});
    const ValueId w = builder.Constant(MixedWeights({96, 130}), "w");
    builder.Output("y", *builder.Add("MatMul", {x, w}));
    EXPECT_FALSE(UsesGemm(builder)) << rows << " rows";
  }
}

TEST(DefaultKernel, IsNativeForOneRow) {
  if (NativeIsaHere() == NativeIsa::kNone) GTEST_SKIP() << "no native kernels here";
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {1, 96}});
  const ValueId w = builder.Constant(MixedWeights({96, 130}), "w");
  builder.Output("y", *builder.Add("MatMul", {x, w}));
  EXPECT_TRUE(UsesPointwise(builder));
}

TEST(DefaultKernel, IsNativeForATransposedConvolutionWithoutOverlap) {
  if (NativeIsaHere() == NativeIsa::kNone) GTEST_SKIP() << "no native kernels here";
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {1, 32, 14, 14}});
  const ValueId w = builder.Constant(MixedWeights({32, 16, 2, 2}), "w");
  builder.Output("y", *builder.Add("ConvTranspose", {x, w},
                                   {{"strides", Shape{2, 2}},
                                    {"dilations", Shape{1, 1}},
                                    {"pads", Shape{0, 0, 0, 0}},
                                    {"output_padding", Shape{0, 0}},
                                    {"group", int64_t{1}}}));
  EXPECT_TRUE(UsesPointwise(builder));
}

}  // namespace
}  // namespace mendel::cpu
