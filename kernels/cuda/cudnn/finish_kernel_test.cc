// The kernel that finishes a transposed convolution of cuDNN's, compiled for real architectures.
// Whole programs test its results (programs_test.cc).

#include "kernels/cuda/cudnn/finish_kernel.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/rewrite.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cudnn/library_case.h"
#include "kernels/cuda/fusion/preamble.h"
#include "kernels/cuda/nvrtc/architectures.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "kernels/cuda/nvrtc/expect_compiled.h"

namespace mendel::cuda {
namespace {

constexpr char kTransposed[] = R"(%0 = Input() {name = "x", shape = [2, 4, 5, 5]}
    %1 = Cast(%0) {to = "TYPE"}
    %2 = Input() {name = "r", shape = [2, 3, 5, 5]}
    %3 = Cast(%2) {to = "TYPE"}
    %4 = Constant() {symbol = "w", value = f32[4, 3, 1, 1]{1, -2, 3, 1, -2, 3, 1, -2, 3, 1, -2, 3}}
    %5 = Cast(%4) {to = "TYPE"}
    %6 = Constant() {symbol = "b", value = f32[3, 1, 1]{1, 2, -3}}
    %7 = Cast(%6) {to = "TYPE"}
    %8 = ConvTranspose(%1, %5) {dilations = [1, 1], group = 1, output_padding = [0, 0], pads = [0, 0, 0, 0], strides = [1, 1]}
    %9 = Add(%8, %7)
    %10 = Add(%9, %3)
    %11 = Relu(%10)
    return "y" = %11)";

/// With every epilogue of a transposed convolution of this dtype, in every form that it has: the
/// text of the kernel each.
void AddKernels(DType dtype, std::set<std::string>& texts) {
  std::string body = kTransposed;
  for (size_t at = body.find("TYPE"); at != std::string::npos; at = body.find("TYPE"))
    body.replace(at, 4, DTypeName(dtype));
  const Graph graph = cudnn_case::Parsed(body);
  const std::vector<bool> constant = ConstantExpressions(graph), none(graph.nodes().size(), false);
  const std::vector<ConvolutionMatch> matches =
      MatchConvolution({graph, constant, none}, 8, Numerics::kF16);
  ASSERT_EQ(matches.size(), 4u) << "bias, residual and Relu; without Relu; the bias alone; nothing";
  std::vector<MemoryFormat> forms = {{}, {.channels_last = true}};
  if (dtype == DType::kF32) {
    for (const DType rounded : {DType::kF16, DType::kBF16}) {
      forms.push_back({.rounded = rounded});
      forms.push_back({.channels_last = true, .rounded = rounded});
    }
  }
  for (const ConvolutionMatch& match : matches) {
    for (const MemoryFormat& form : forms) {
      if (match.convolution.residual && !form.IsOwn()) continue;
      const FusedKernel kernel = FinishedByKernel(match, form).group.finish;
      EXPECT_NE(kernel.text.find(kernel.name), std::string::npos);
      texts.insert(kernel.text);
    }
  }
}

TEST(CudnnFinishKernel, CompilesWithoutADevice) {
  const Compiler* const compiler = FoundCompiler();
  if (compiler == nullptr) return;
  std::set<std::string> texts;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    ASSERT_NO_FATAL_FAILURE(AddKernels(dtype, texts));
  EXPECT_GE(texts.size(), 15u);
  std::string module = PreambleText();
  for (const std::string& text : texts) module += text;
  for (const int architecture : kCompiledArchitectures) {
    const auto compiled = CompiledWithoutSpills(*compiler, module, "finish", architecture);
    if (!compiled.has_value()) continue;
    EXPECT_EQ(compiled->entries.size(), texts.size());
    EXPECT_EQ(compiled->usage.stack_bytes, 0) << "sm_" << architecture;
    int most = 0;
    for (const auto& [name, usage] : compiled->entries) most = std::max(most, usage.registers);
    EXPECT_GT(most, 0);
    std::printf("sm_%d: %zu kernels, at most %d registers a thread\n", architecture, texts.size(),
                most);
  }
}

}  // namespace
}  // namespace mendel::cuda
