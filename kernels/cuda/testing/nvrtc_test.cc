// Every kind of emitted kernel compiled for real architectures, its resources printed; spilled
// registers fail.

#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "base/status.h"
#include "kernels/cuda/driver_table/library.h"
#include "kernels/cuda/emit/roofline.h"
#include "kernels/cuda/nvrtc/architectures.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "kernels/cuda/nvrtc/expect_compiled.h"
#include "kernels/cuda/testing/correction_case.h"

namespace mendel::cuda {
namespace {

/// Layers of CSRNet's back end and of ResNet-18 with the seams of mutants that put images or
/// stripes side by side.
std::vector<std::pair<std::string, Graph>> Layers() {
  const auto conv = [](int64_t images, int64_t channels, int64_t extent, int64_t dilation,
                       DType dtype, std::vector<Box> boxes) {
    return CorrectedConv({.x = {images, channels, extent, extent},
                          .w = {channels, channels, 3, 3},
                          .strides = {1, 1},
                          .dilations = {dilation, dilation},
                          .pads = {dilation, dilation, dilation, dilation},
                          .dtype = dtype},
                         boxes);
  };
  const auto rows = [](int64_t images, int64_t channels, int64_t extent, int64_t begin,
                       int64_t end) {
    return Box{{0, 0, begin, 0}, {images, channels, end, extent}};
  };
  return {
      {"csrnet 512x28x28 dilation 2",
       conv(1, 512, 28, 2, DType::kF32, {rows(1, 512, 28, 1, 2), rows(1, 512, 28, 26, 27)})},
      {"csrnet 512x28x28 dilation 2, f16",
       conv(1, 512, 28, 2, DType::kF16, {rows(1, 512, 28, 1, 2), rows(1, 512, 28, 26, 27)})},
      {"resnet18 64x56x56", conv(4, 64, 56, 1, DType::kF32, {rows(4, 64, 56, 27, 29)})},
      {"resnet18 128x28x28, bf16",
       conv(4, 128, 28, 1, DType::kBF16, {rows(4, 128, 28, 0, 1), rows(4, 128, 28, 27, 28)})},
  };
}

void CompileAll(const Compiler& compiler, const std::string& what, const EmittedKernel& kernel) {
  std::printf("%-44s %3dx%-3d %5u blocks", what.c_str(), kernel.tile.rows, kernel.tile.columns,
              kernel.launch.grid);
  for (const int architecture : kCompiledArchitectures) {
    if (!compiler.Supports(architecture)) {
      std::printf("  sm_%d: unknown to NVRTC %s", architecture, compiler.version().c_str());
      continue;
    }
    const auto compiled = compiler.Compile(kernel.text, kernel.name, architecture);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    EXPECT_GT(compiled->usage.registers, 0);
    EXPECT_EQ(compiled->usage.spilled_bytes, 0) << what << " for sm_" << architecture;
    EXPECT_EQ(compiled->usage.stack_bytes, 0) << what << " for sm_" << architecture;
    std::printf("  sm_%d: %d / %d / %.0f %%", architecture, compiled->usage.registers,
                compiled->usage.spilled_bytes,
                100 * Occupancy(architecture, compiled->usage.registers,
                                static_cast<int>(kernel.launch.shared), kernel.tile.threads()));
  }
  std::printf("  %u bytes shared\n", kernel.launch.shared);
}

TEST(Nvrtc, KernelsCompileWithoutSpills) {
  const Compiler* const compiler = FoundCompiler();
  if (compiler == nullptr) return;
  std::printf("NVRTC %s at %s\n", compiler->version().c_str(), compiler->path().c_str());
  std::printf("registers a thread / bytes spilled / occupancy by architecture\n");
  int number = 0;
  std::map<DividedSum::Stage, int> stages;
  for (const auto& [name, graph] : Layers()) {
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
      const auto one = MakeCase(graph, layout, Cat("l", number++, "_"));
      ASSERT_TRUE(one.ok()) << one.status();
      for (size_t k = 0; k < one->kernels.size(); ++k) {
        const auto stage = one->patch_kernels.kernels[k].correction.divided.stage;
        ++stages[stage];
        const char* const reported = stage == DividedSum::Stage::kParts
                                         ? ", parts"
                                         : (stage == DividedSum::Stage::kTotal ? ", total" : "");
        CompileAll(*compiler, Cat(name, " ", LayoutName(layout), reported), one->kernels[k]);
      }
    }
  }
  for (const auto stage :
       {DividedSum::Stage::kNone, DividedSum::Stage::kParts, DividedSum::Stage::kTotal})
    EXPECT_GT(stages[stage], 0);
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const CorrectionCase one = RandomCase(seed);
    for (const EmittedKernel& kernel : one.kernels)
      CompileAll(*compiler, Cat("seed ", seed), kernel);
  }
}

TEST(Nvrtc, ErrorsAreReported) {
  const Compiler* const compiler = FoundCompiler();
  if (compiler == nullptr) return;
  const auto compiled =
      compiler->Compile("extern \"C\" __global__ void f() { nonsense; }", "f", 90);
  EXPECT_TRUE(absl::IsInvalidArgument(compiled.status()));
  EXPECT_NE(std::string(compiled.status().message()).find("nonsense"), std::string::npos);
}

TEST(ResourceUsage, IsReadFromTheLog) {
  const ResourceUsage usage = ParseUsage(
      "ptxas info    : Function properties for f\nptxas         .     16 bytes stack frame, 8 "
      "bytes spill stores, 12 bytes spill "
      "loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers\n");
  EXPECT_EQ(usage.registers, 40);
  EXPECT_EQ(usage.spilled_bytes, 20);
  EXPECT_EQ(usage.stack_bytes, 16);
}

TEST(ResourceUsage, IsReadEntryByEntry) {
  const auto entries = ParseUsageOfEntries(
      "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'one' for 'sm_90'\n"
      "ptxas info    : Function properties for one\n    0 bytes stack frame, 0 bytes spill stores, "
      "0 bytes spill loads\n"
      "ptxas info    : Used 12 registers, used 0 barriers\nptxas info    : Compiling entry "
      "function 'two' for 'sm_90'\n"
      "ptxas info    : Function properties for two\n    8 bytes stack frame, 4 bytes spill stores, "
      "4 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers\n");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries.at("one").registers, 12);
  EXPECT_EQ(entries.at("one").spilled_bytes, 0);
  EXPECT_EQ(entries.at("two").registers, 255);
  EXPECT_EQ(entries.at("two").spilled_bytes, 8);
}

TEST(Occupancy, FollowsEveryArchitecturesLimits) {
  // 32 registers, blocks of 256 threads: threads are what ends.
  for (const GpuModel& gpu : AllGpus())
    EXPECT_EQ(Occupancy(gpu.compute_capability, 32, 0, 256), 1) << gpu.name;
  // 64 registers a thread: 1,024 threads are resident, of 1,024, 1,536 or 2,048.
  EXPECT_DOUBLE_EQ(Occupancy(75, 64, 0, 256), 1);
  EXPECT_DOUBLE_EQ(Occupancy(86, 64, 0, 256), 2.0 / 3);
  EXPECT_DOUBLE_EQ(Occupancy(90, 64, 0, 256), 0.5);
  // 31 KiB a block and 1 KiB of the system's: 2 of 64 KiB, 3 of 100 KiB, 5 of 164 KiB, 7 of 228
  // KiB.
  EXPECT_DOUBLE_EQ(Occupancy(75, 32, 31 << 10, 128), 2 * 128 / 1024.0);
  EXPECT_DOUBLE_EQ(Occupancy(89, 32, 31 << 10, 128), 3 * 128 / 1536.0);
  EXPECT_DOUBLE_EQ(Occupancy(120, 32, 31 << 10, 128), 3 * 128 / 1536.0);
  EXPECT_DOUBLE_EQ(Occupancy(80, 32, 31 << 10, 128), 5 * 128 / 2048.0);
  EXPECT_DOUBLE_EQ(Occupancy(100, 32, 31 << 10, 128), 7 * 128 / 2048.0);
  // Blocks of one warp: 16, 24 or 32 of them.
  EXPECT_DOUBLE_EQ(Occupancy(75, 16, 0, 32), 0.5);
  EXPECT_DOUBLE_EQ(Occupancy(89, 16, 0, 32), 0.5);
  EXPECT_DOUBLE_EQ(Occupancy(86, 16, 0, 32), 1.0 / 3);
}

TEST(Library, AbsentOnesAreNotFound) {
  const auto library = OpenLibrary({"libmendel_no_such_library.so"});
  EXPECT_TRUE(absl::IsNotFound(library.status()));
  EXPECT_NE(
      std::string(library.status().message()).find("--cuda-path, MENDEL_CUDA_PATH, CUDA_HOME"),
      std::string::npos);
  const auto by_loader = OpenLibrary({"libmendel_no_such_library.so"}, {""});
  EXPECT_TRUE(std::string(by_loader.status().message()).ends_with("(LD_LIBRARY_PATH, ldconfig)"))
      << by_loader.status();
}

TEST(Library, FilesThatAreNoLibrariesAreReported) {
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
