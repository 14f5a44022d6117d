// Tests of what cuDNN itself compiles at run time: with a stub in place of the driver it proposes
// such engines, compiles their kernels by NVRTC, and reports them. Nothing runs.

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cudnn/attention.h"
#include "kernels/cuda/cudnn/convolution.h"
#include "kernels/cuda/cudnn/library_case.h"
#include "kernels/cuda/emit/roofline.h"

namespace mendel::cuda {
namespace {

/// cuDNN, which takes the stub for the driver; null where it is not installed.
const Cudnn* CudnnWithStub() {
  static void* const stub = dlopen(MENDEL_STUB_DRIVER, RTLD_NOW | RTLD_GLOBAL);
  EXPECT_NE(stub, nullptr) << dlerror();
  return cudnn_case::InstalledCudnn();
}

/// 64 channels, kernel 3, same size, the channels last.
CudnnConvolution Same(DType dtype, CudnnActivation activation, bool transposed) {
  CudnnConvolution conv;
  conv.dtype = dtype;
  conv.channels_last = true;
  conv.transposed = transposed;
  conv.x = conv.y = {1, 64, 28, 28};
  conv.w = {64, 64, 3, 3};
  conv.strides = conv.dilations = conv.pads_begin = conv.pads_end = {1, 1};
  conv.bias = true;
  conv.activation = activation;
  return conv;
}

const std::map<CudnnActivation, std::string>& Names() {
  static const auto* names = new std::map<CudnnActivation, std::string>{
      {CudnnActivation::kNone, "none"},       {CudnnActivation::kRelu, "Relu"},
      {CudnnActivation::kSigmoid, "Sigmoid"}, {CudnnActivation::kSilu, "Silu"},
      {CudnnActivation::kGelu, "Gelu"},       {CudnnActivation::kGeluTanh, "Gelu by tanh"}};
  return *names;
}

/// The first engine, with its kernels, for `conv`.
absl::StatusOr<CudnnEngine> FirstEngine(const Cudnn& cudnn, const CudnnConvolution& conv,
                                        int architecture) {
  MENDEL_ASSIGN_OR_RETURN(const auto engines,
                          PlanConvolution(cudnn, conv, {.tf32 = conv.dtype == DType::kF32},
                                          DevicePropertiesJson(*GpuOf(architecture)),
                                          {.engines = 1, .may_compile = true}));
  if (engines.empty()) return Unsupported("no engine is allowed");
  return engines[0];
}

TEST(CudnnCompiled, EpiloguesHaveEnginesWithoutADevice) {
  const Cudnn* const cudnn = CudnnWithStub();
  if (cudnn == nullptr) GTEST_SKIP() << "cuDNN is not installed";
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const bool transposed : {false, true}) {
      for (const auto& [activation, name] : Names()) {
        const bool is_precompiled = !transposed && (activation == CudnnActivation::kNone ||
                                                    activation == CudnnActivation::kRelu);
        // bf16 has the engines of f16, and those of transposed convolutions differ by their ends.
        const bool is_repeated = (dtype == DType::kBF16 && activation != CudnnActivation::kSilu) ||
                                 (transposed && activation != CudnnActivation::kRelu &&
                                  activation != CudnnActivation::kSilu);
        if (is_precompiled || is_repeated) continue;
        const auto begin = std::chrono::steady_clock::now();
        const auto engine = FirstEngine(*cudnn, Same(dtype, activation, transposed), 90);
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
        const std::string what = Cat(DTypeName(dtype), transposed ? " transposed, " : ", ", name);
        ASSERT_TRUE(engine.ok()) << what << ": " << engine.status();
        EXPECT_EQ(std::count(engine->notes.begin(), engine->notes.end(), cudnn::kTensorCores), 1)
            << what;
        EXPECT_TRUE(engine->compiled_at_run_time) << what;
        EXPECT_NE(engine->plan_json.find("\"cubin\""), std::string::npos) << what;
        std::printf("%s: engine %lld, %.2f s, %zu bytes\n", what.c_str(),
                    static_cast<long long>(engine->index), taken.count(), engine->plan_json.size());
      }
    }
  }
}

/// The kernels are part of a plan's text.
TEST(CudnnCompiled, EveryArchitectureHasSiluInHalfPrecision) {
  const Cudnn* const cudnn = CudnnWithStub();
  if (cudnn == nullptr) GTEST_SKIP() << "cuDNN is not installed";
  for (const GpuModel& gpu : AllGpus()) {
    const auto engine = FirstEngine(*cudnn, Same(DType::kF16, CudnnActivation::kSilu, false),
                                    gpu.compute_capability);
    ASSERT_TRUE(engine.ok()) << gpu.name << ": " << engine.status();
    EXPECT_TRUE(engine->compiled_at_run_time) << gpu.name;
    EXPECT_NE(engine->plan_json.find("\"cubin\""), std::string::npos) << gpu.name;
  }
}

/// Rows with the channels before the positions have none: the kinds are channels-last alone.
TEST(CudnnCompiled, NoEngineHasSiluWithTheChannelsFirst) {
  const Cudnn* const cudnn = CudnnWithStub();
  if (cudnn == nullptr) GTEST_SKIP() << "cuDNN is not installed";
  CudnnConvolution conv = Same(DType::kF16, CudnnActivation::kSilu, false);
  conv.channels_last = false;
  EXPECT_FALSE(FirstEngine(*cudnn, conv, 90).ok());
}

/// Heads of `columns` numbers beside positions: [batch, rows, heads, columns] in memory.
HeadMatrices HeadsInRows(int64_t batch, int64_t heads, int64_t rows, int64_t columns) {
  return {{batch, heads, rows, columns}, {rows * heads * columns, columns, heads * columns, 1}};
}

CudnnAttention AttentionOf(DType dtype, int64_t rows, int64_t keys, int64_t columns) {
  const HeadMatrices q = HeadsInRows(2, 12, rows, columns), k = HeadsInRows(2, 12, keys, columns);
  return {dtype, q, k, k, q, 0.125F};
}

CudnnAttention Masked(CudnnAttention attention, DType dtype, const Shape& shape) {
  attention.mask = HeadMatrices{shape, RowMajorStrides(shape)};
  attention.mask_dtype = dtype;
  return attention;
}

TEST(CudnnCompiled, AttentionHasEnginesWithoutADevice) {
  const Cudnn* const cudnn = CudnnWithStub();
  if (cudnn == nullptr) GTEST_SKIP() << "cuDNN is not installed";
  const CudnnAttention cases[] = {
      AttentionOf(DType::kF16, 128, 128, 64),
      AttentionOf(DType::kBF16, 197, 197, 64),
      AttentionOf(DType::kF16, 50, 77, 80),
      AttentionOf(DType::kBF16, 1, 100, 32),
      Masked(AttentionOf(DType::kF16, 128, 128, 64), DType::kF32, {2, 1, 1, 128}),
      Masked(AttentionOf(DType::kBF16, 49, 49, 32), DType::kBF16, {1, 12, 49, 49}),
      Masked(AttentionOf(DType::kF16, 50, 77, 64), DType::kF32, {1, 1, 50, 77})};
  for (const GpuModel& gpu : AllGpus()) {
    for (const CudnnAttention& attention : cases) {
      const auto engines = PlanAttention(*cudnn, attention, DevicePropertiesJson(gpu),
                                         {.engines = 1, .may_compile = true});
      if (gpu.compute_capability < 80) {
        EXPECT_FALSE(engines.ok()) << "an attention for " << gpu.name;
        continue;
      }
      ASSERT_TRUE(engines.ok()) << gpu.name << ": " << engines.status();
      ASSERT_EQ(engines->size(), 1u) << gpu.name;
      EXPECT_TRUE((*engines)[0].compiled_at_run_time) << gpu.name;
      EXPECT_NE((*engines)[0].plan_json.find("\"cubin\""), std::string::npos) << gpu.name;
    }
  }
}

/// Compiling is a choice: without it, there is none.
TEST(CudnnCompiled, NothingIsCompiledUnlessItIsAllowed) {
  const Cudnn* const cudnn = CudnnWithStub();
  if (cudnn == nullptr) GTEST_SKIP() << "cuDNN is not installed";
  const std::string device = DevicePropertiesJson(*GpuOf(90));
  const auto attention =
      PlanAttention(*cudnn, AttentionOf(DType::kF16, 128, 128, 64), device, {.engines = 1});
  ASSERT_TRUE(attention.ok()) << attention.status();
  EXPECT_TRUE(attention->empty());
  const auto silu = PlanConvolution(*cudnn, Same(DType::kF16, CudnnActivation::kSilu, false), {},
                                    device, {.engines = 8});
  ASSERT_TRUE(silu.ok()) << silu.status();
  EXPECT_TRUE(silu->empty());
}

}  // namespace
}  // namespace mendel::cuda
