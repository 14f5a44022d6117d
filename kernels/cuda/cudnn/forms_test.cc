// Tests of every form of operation graph that Mendel builds, planned by cuDNN without a device.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cudnn/convolution.h"
#include "kernels/cuda/cudnn/library_case.h"

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

constexpr int kArchitectures[] = {75, 80, 86, 89, 90, 100, 120};

enum Geometry { kSame, kFourGroups, kDepthwise, kDilated, kStrided, kGeometries };
constexpr const char* kGeometryNames[] = {"", " of 4 groups", " depthwise", " dilated",
                                          " strided with uneven pads"};

/// The operations after the sums. A transposed convolution's graph has none of them.
enum Product { kSums, kBias, kBiasRelu, kResidual, kResidualRelu, kTransposed, kProducts };
constexpr const char* kProductNames[] = {"",
                                         " + bias",
                                         " + bias, relu",
                                         " + residual + bias",
                                         " + residual + bias, relu",
                                         ", transposed"};

struct GraphForm {
  DType dtype;
  bool channels_last;
  size_t dimensions;
  Product product;
  Geometry geometry;

  std::string Description() const {
    return Cat(DTypeName(dtype), channels_last ? " channels last " : " channels first ", dimensions,
               "-D", kGeometryNames[geometry], kProductNames[product]);
  }
};

CudnnConvolution ConvolutionOf(const GraphForm& form) {
  CudnnConvolution conv;
  conv.dtype = form.dtype;
  conv.channels_last = form.channels_last;
  const int64_t groups = form.geometry == kFourGroups ? 4 : (form.geometry == kDepthwise ? 64 : 1);
  const int64_t dilation = form.geometry == kDilated ? 2 : 1;
  conv.x = {2, 64};
  conv.w = {64, 64 / groups};
  conv.y = {2, 64};
  for (size_t d = 0; d < form.dimensions; ++d) {
    const bool strided = form.geometry == kStrided && d == 0;
    conv.x.push_back(form.dimensions == 3 ? 10 : 28);
    conv.w.push_back(3);
    conv.y.push_back(strided ? conv.x.back() / 2 : conv.x.back());
    conv.strides.push_back(strided ? 2 : 1);
    conv.dilations.push_back(dilation);
    conv.pads_begin.push_back(strided ? 0 : dilation);
    conv.pads_end.push_back(dilation);
  }
  conv.transposed = form.product == kTransposed;
  if (conv.transposed) std::swap(conv.x, conv.y);
  conv.bias = form.product != kSums && !conv.transposed;
  conv.residual = form.product == kResidual || form.product == kResidualRelu;
  if (form.product == kBiasRelu || form.product == kResidualRelu)
    conv.activation = CudnnActivation::kRelu;
  return conv;
}

/// cuDNN 9.19 has strict f32 everywhere, no TF32 and little of 16 bits before sm_80, and little
/// TF32 for groups.
bool MayLackEngines(const GraphForm& form, bool tf32, int architecture) {
  if (architecture < 80) return tf32 || form.dtype != DType::kF32;
  return tf32 && (form.geometry == kFourGroups || form.geometry == kDepthwise);
}

/// Every product in every dtype and layout; the rank, geometry and architecture of each are drawn.
std::vector<GraphForm> DrawnForms(Rng& rng) {
  std::vector<GraphForm> forms;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const bool last : {false, true}) {
      for (int product = 0; product < kProducts; ++product) {
        forms.push_back({dtype, last, static_cast<size_t>(rng.Between(1, 3)),
                         static_cast<Product>(product),
                         static_cast<Geometry>(rng.Between(0, kGeometries - 1))});
      }
    }
  }
  return forms;
}

TEST(CudnnForms, EveryFormIsPlannedWithoutADevice) {
  const Cudnn* cudnn = cudnn_case::InstalledCudnn();
  if (cudnn == nullptr) GTEST_SKIP() << "cuDNN is not installed";
  const char* more = std::getenv("MENDEL_CUDA_SEEDS");
  const uint64_t seeds = more == nullptr ? 2 : std::strtoull(more, nullptr, 10);
  int planned = 0, lacking = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Rng rng(seed);
    for (const GraphForm& form : DrawnForms(rng)) {
      const int architecture = kArchitectures[rng.Between(0, std::ssize(kArchitectures) - 1)];
      const bool tf32 = form.dtype == DType::kF32 && rng.Flip(0.3);
      const auto engines =
          PlanConvolution(*cudnn, ConvolutionOf(form), {.tf32 = tf32, .winograd = !tf32},
                          DevicePropertiesJson(*GpuOf(architecture)), {});
      const std::string description = Cat("seed ", seed, ": ", form.Description(),
                                          tf32 ? " TF32" : "", " on sm_", architecture);
      if (!engines.ok() || engines->empty()) {
        EXPECT_TRUE(engines.ok() || absl::IsUnimplemented(engines.status()))
            << description << " " << engines.status();
        EXPECT_TRUE(MayLackEngines(form, tf32, architecture)) << description;
        ++lacking;
        continue;
      }
      EXPECT_THAT((*engines)[0].plan_json, HasSubstr("engineId")) << description;
      EXPECT_GE((*engines)[0].workspace_bytes, 0) << description;
      ++planned;
    }
  }
  std::printf("%d forms planned, %d without an engine, of seeds 1 to %llu\n", planned, lacking,
              static_cast<unsigned long long>(seeds));
  EXPECT_GT(planned, 5 * lacking);
}

}  // namespace
}  // namespace mendel::cuda
