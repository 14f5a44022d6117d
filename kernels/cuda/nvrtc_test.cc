// Every kind of emitted kernel compiled for real architectures, its resources printed; spilled registers fail.

#include <gtest/gtest.h>

#include <cstdio>

#include "base/status.h"
#include "kernels/cuda/driver_table/library.h"
#include "kernels/cuda/emit/roofline.h"
#include "kernels/cuda/mending_case.h"
#include "kernels/cuda/nvrtc/compiler.h"

namespace mendel::cuda {
namespace {

constexpr int kArchitectures[] = {80, 90, 100};

/// Layers of CSRNet's back end and of ResNet-18 with the seams of mutants that put images or stripes side by side.
std::vector<std::pair<std::string, Graph>> Layers() {
  const auto conv = [](int64_t images, int64_t channels, int64_t extent, int64_t dilation, DType dtype, std::vector<Box> boxes) {
    return MendedConv({.x = {images, channels, extent, extent},
                       .w = {channels, channels, 3, 3},
                       .strides = {1, 1},
                       .dilations = {dilation, dilation},
                       .pads = {dilation, dilation, dilation, dilation},
                       .dtype = dtype},
                      boxes);
  };
  const auto rows = [](int64_t images, int64_t channels, int64_t extent, int64_t begin, int64_t end) {
    return Box{{0, 0, begin, 0}, {images, channels, end, extent}};
  };
  return {
      {"csrnet 512x28x28 dilation 2", conv(1, 512, 28, 2, DType::kF32, {rows(1, 512, 28, 1, 2), rows(1, 512, 28, 26, 27)})},
      {"csrnet 512x28x28 dilation 2, f16", conv(1, 512, 28, 2, DType::kF16, {rows(1, 512, 28, 1, 2), rows(1, 512, 28, 26, 27)})},
      {"resnet18 64x56x56", conv(4, 64, 56, 1, DType::kF32, {rows(4, 64, 56, 27, 29)})},
      {"resnet18 128x28x28, bf16", conv(4, 128, 28, 1, DType::kBF16, {rows(4, 128, 28, 0, 1), rows(4, 128, 28, 27, 28)})},
  };
}

void CompileAll(const Compiler& compiler, const std::string& what, const EmittedKernel& kernel) {
  std::printf("%-36s %3dx%-3d %5u blocks", what.c_str(), kernel.tile.rows, kernel.tile.columns, kernel.launch.grid);
  for (const int architecture : kArchitectures) {
    if (!compiler.Supports(architecture)) {
      std::printf("  sm_%d: unknown to NVRTC %s", architecture, compiler.version().c_str());
      continue;
    }
    const auto compiled = compiler.Compile(kernel.text, kernel.name, architecture);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    EXPECT_GT(compiled->usage.registers, 0);
    EXPECT_EQ(compiled->usage.spilled_bytes, 0) << what << " for sm_" << architecture;
    EXPECT_EQ(compiled->usage.stack_bytes, 0) << what << " for sm_" << architecture;
    std::printf(
        "  sm_%d: %d registers, %d spilled, %.0f %% occupancy", architecture, compiled->usage.registers,
        compiled->usage.spilled_bytes,
        100 * Occupancy(architecture, compiled->usage.registers, static_cast<int>(kernel.launch.shared), kernel.tile.threads()));
  }
  std::printf("  %u bytes shared\n", kernel.launch.shared);
}

/// Null, and says so, where there is no NVRTC.
const Compiler* CompilerOrSkip() {
  const auto compiler = Compiler::Get();
  if (compiler.ok()) return *compiler;
  std::printf("\nSKIP: %s\n", std::string(compiler.status().message()).c_str());
  return nullptr;
}

TEST(Nvrtc, KernelsCompileWithoutSpills) {
  const Compiler* compiler = CompilerOrSkip();
  if (compiler == nullptr) GTEST_SKIP();
  std::printf("NVRTC %s at %s\n", compiler->version().c_str(), compiler->path().c_str());
  int number = 0;
  for (const auto& [name, graph] : Layers()) {
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
      const auto one = MakeCase(graph, layout, Cat("l", number++, "_"));
      ASSERT_TRUE(one.ok()) << one.status();
      ASSERT_EQ(one->kernels.size(), 1u) << "one launch a mutant";
      CompileAll(*compiler, Cat(name, " ", LayoutName(layout)), one->kernels[0]);
    }
  }
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const MendingCase one = RandomCase(seed);
    for (const EmittedKernel& kernel : one.kernels) CompileAll(*compiler, Cat("seed ", seed), kernel);
  }
}

TEST(Nvrtc, ErrorsAreTold) {
  const Compiler* compiler = CompilerOrSkip();
  if (compiler == nullptr) GTEST_SKIP();
  const auto compiled = compiler->Compile("extern \"C\" __global__ void f() { nonsense; }", "f", 90);
  EXPECT_TRUE(absl::IsInvalidArgument(compiled.status()));
  EXPECT_NE(std::string(compiled.status().message()).find("nonsense"), std::string::npos);
}

TEST(ResourceUsage, IsReadFromTheLog) {
  const ResourceUsage usage = ParseUsage(
      "ptxas info    : Function properties for f\nptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill "
      "loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers\n");
  EXPECT_EQ(usage.registers, 40);
  EXPECT_EQ(usage.spilled_bytes, 20);
  EXPECT_EQ(usage.stack_bytes, 16);
}

TEST(Library, AbsentOnesAreNotFound) {
  const auto library = OpenLibrary({"libmendel_no_such_library.so"});
  EXPECT_TRUE(absl::IsNotFound(library.status()));
  EXPECT_NE(std::string(library.status().message()).find("--cuda-path, MENDEL_CUDA_PATH, CUDA_HOME"), std::string::npos);
  const auto by_loader = OpenLibrary({"libmendel_no_such_library.so"}, {""});
  EXPECT_TRUE(std::string(by_loader.status().message()).ends_with("(LD_LIBRARY_PATH, ldconfig)")) << by_loader.status();
}

TEST(Library, FilesThatAreNoLibrariesAreTold) {
  const std::string folder = ::testing::TempDir();
  std::FILE* file = std::fopen((folder + "/libmendel_broken.so").c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("text", file);
  std::fclose(file);
  const auto library = OpenLibrary({"libmendel_broken.so"}, {folder});
  EXPECT_TRUE(absl::IsNotFound(library.status()));
  EXPECT_NE(std::string(library.status().message()).find("libmendel_broken.so"), std::string::npos);
}

}  // namespace
}  // namespace mendel::cuda
