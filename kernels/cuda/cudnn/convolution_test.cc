// Tests of convolutions planned by cuDNN without a device, and of each call of its table failing.

#include "kernels/cuda/cudnn/convolution.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cudnn/descriptor.h"
#include "kernels/cuda/cudnn/library_case.h"
#include "kernels/cuda/testing/fake/fake_cudnn.h"

namespace mendel::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Form {
  std::string name;
  CudnnConvolution convolution;
};

/// A convolution of 64 channels, kernel 3, same size.
CudnnConvolution Same(size_t dimensions, DType dtype, bool channels_last, int64_t groups,
                      int64_t dilation) {
  CudnnConvolution conv;
  conv.dtype = dtype;
  conv.channels_last = channels_last;
  conv.x = {2, 64};
  conv.w = {64, 64 / groups};
  for (size_t d = 0; d < dimensions; ++d) {
    conv.x.push_back(dimensions == 3 ? 10 : 28);
    conv.w.push_back(3);
    conv.strides.push_back(1);
    conv.dilations.push_back(dilation);
    conv.pads_begin.push_back(dilation);
    conv.pads_end.push_back(dilation);
  }
  conv.y = conv.x;
  return conv;
}

/// The forms that Mendel builds (forms_test.cc) and whose plans are made again.
std::vector<Form> Forms() {
  std::vector<Form> forms;
  const auto add = [&](const std::string& name, const CudnnConvolution& conv) {
    for (int epilogue = 0; epilogue < 4; ++epilogue) {
      CudnnConvolution one = conv;
      one.bias = epilogue > 0;
      one.residual = epilogue > 2;
      if (epilogue > 1) one.activation = CudnnActivation::kRelu;
      constexpr const char* kNames[] = {"", " + bias", " + bias, relu", " + residual + bias, relu"};
      forms.push_back({name + kNames[epilogue], one});
    }
  };
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const bool last : {false, true}) {
      add(Cat(DTypeName(dtype), last ? " NHWC" : " NCHW"), Same(2, dtype, last, 1, 1));
    }
  }
  add("1-D", Same(1, DType::kF32, false, 1, 1));
  add("3-D", Same(3, DType::kF32, true, 1, 1));
  add("4 groups", Same(2, DType::kF32, true, 4, 1));
  add("depthwise", Same(2, DType::kF16, true, 64, 1));
  add("dilation 2", Same(2, DType::kF32, true, 1, 2));
  CudnnConvolution strided = Same(2, DType::kF32, false, 1, 1);
  strided.strides = {2, 1};
  strided.y = {2, 64, 14, 28};
  strided.pads_begin = {0, 1};
  add("stride 2, uneven pads", strided);
  return forms;
}

TEST(CudnnConvolution, StrictNumbersComeFromOtherEngines) {
  const Cudnn* cudnn = cudnn_case::InstalledCudnn();
  if (cudnn == nullptr) GTEST_SKIP() << "cuDNN is not installed";
  for (const bool last : {false, true}) {
    const CudnnConvolution conv = Same(2, DType::kF32, last, 1, 1);
    const auto strict =
        PlanConvolution(*cudnn, conv, {}, DevicePropertiesJson(*GpuOf(90)), {.engines = 64});
    const auto tf32 = PlanConvolution(*cudnn, conv, {.tf32 = true},
                                      DevicePropertiesJson(*GpuOf(90)), {.engines = 64});
    const auto old = PlanConvolution(*cudnn, conv, {.tf32 = true}, DevicePropertiesJson(*GpuOf(75)),
                                     {.engines = 64});
    ASSERT_TRUE(strict.ok() && tf32.ok() && old.ok())
        << strict.status() << tf32.status() << old.status();
    EXPECT_FALSE(strict->empty());
    EXPECT_FALSE(tf32->empty());
    EXPECT_TRUE(old->empty()) << "sm_75 has no TF32";
    for (const CudnnEngine& engine : *tf32) {
      EXPECT_EQ(std::count(engine.notes.begin(), engine.notes.end(), cudnn::kTensorCores), 1)
          << engine.plan_json;
      for (const int note : {cudnn::kDownConverts, cudnn::kReducedSums, cudnn::kVaries,
                             cudnn::kFourier, cudnn::kWinograd}) {
        EXPECT_EQ(std::count(engine.notes.begin(), engine.notes.end(), note), 0)
            << engine.plan_json;
      }
    }
    for (const CudnnEngine& engine : *strict) {
      for (const int note : {cudnn::kTensorCores, cudnn::kDownConverts, cudnn::kVaries,
                             cudnn::kFourier, cudnn::kWinograd}) {
        EXPECT_EQ(std::count(engine.notes.begin(), engine.notes.end(), note), 0)
            << engine.plan_json;
      }
    }
    std::printf("%s: %zu engines in strict f32, %zu in TF32\n", last ? "NHWC" : "NCHW",
                strict->size(), tf32->size());
  }
}

TEST(CudnnConvolution, EnginesThatAreKnownToBeWrongAreNotTaken) {
  CudnnConvolution convolution;
  convolution.transposed = true;
  convolution.pads_begin = {0, 2};
  convolution.pads_end = {0, 0};
  EXPECT_THAT(RulesOf(convolution, {}, false).wrong_engines, ElementsAre(50));
  convolution.pads_end = {0, 2};
  EXPECT_THAT(RulesOf(convolution, {}, false).wrong_engines, IsEmpty()) << "even pads";
  convolution.transposed = false;
  convolution.pads_end = {0, 0};
  EXPECT_THAT(RulesOf(convolution, {}, false).wrong_engines, IsEmpty())
      << "not transposed: engines have other numbers";
}

TEST(CudnnConvolution, PlansAreMadeAgainWithoutADevice) {
  const Cudnn* cudnn = cudnn_case::InstalledCudnn();
  if (cudnn == nullptr) GTEST_SKIP() << "cuDNN is not installed";
  const auto device =
      std::make_shared<Descriptor>(*cudnn, cudnn::kDevice, "the device's properties");
  device->Text(cudnn::kDeviceJson, DevicePropertiesJson(*GpuOf(90)));
  ASSERT_TRUE(device->Finalize().ok()) << device->status();
  int made = 0;
  for (const Form& form : Forms()) {
    std::vector<CudnnEngine> all;
    for (const bool tf32 : {false, true}) {
      const auto engines = PlanConvolution(*cudnn, form.convolution, {.tf32 = tf32},
                                           DevicePropertiesJson(*GpuOf(90)), {.engines = 4});
      ASSERT_TRUE(engines.ok()) << form.name << " " << engines.status();
      all.insert(all.end(), engines->begin(), engines->end());
    }
    for (const CudnnEngine& engine : all) {
      Descriptor plan(*cudnn, cudnn::kPlan, "the execution plan");
      plan.Refer(cudnn::kPlanDevice, {device});
      plan.Text(cudnn::kPlanJson, engine.plan_json);
      ASSERT_TRUE(plan.Finalize().ok())
          << form.name << " engine " << engine.index << " " << plan.status();
      int64_t workspace = -1;
      ASSERT_TRUE(plan.Get(cudnn::kPlanWorkspace, cudnn::kInt64, 1, &workspace).ok());
      EXPECT_EQ(workspace, engine.workspace_bytes) << form.name;
      ++made;
    }
  }
  Descriptor pack(*cudnn, cudnn::kVariantPack, "the variant pack");
  pack.Ints(cudnn::kPackIds, {kCudnnX, kCudnnW, kCudnnY});
  void* const address = reinterpret_cast<void*>(uintptr_t{1} << 20);
  pack.Pointers(cudnn::kPackPointers, {address, address, address});
  pack.Pointers(cudnn::kPackWorkspace, {nullptr});
  EXPECT_TRUE(pack.Finalize().ok()) << pack.status();
  std::printf("%d plans made again of their text\n", made);
}

TEST(CudnnConvolution, EveryCallMayFail) {
  CudnnConvolution conv = Same(2, DType::kF32, true, 1, 1);
  conv.bias = conv.residual = true;
  conv.activation = CudnnActivation::kRelu;
  FakeCudnn fake;
  const auto plan = [&](int64_t call, int error) {
    fake.FailAt(call, error);
    return PlanConvolution(fake.table(), conv, {.winograd = true}, "{}", {.engines = 4});
  };
  const auto right = plan(0, 0);
  ASSERT_TRUE(right.ok()) << right.status();
  ASSERT_EQ(right->size(), 4u);
  EXPECT_EQ((*right)[2].index, 4);
  EXPECT_EQ((*right)[2].workspace_bytes, 1000);
  EXPECT_EQ(fake.Leaks(), "");
  const int64_t calls = fake.Calls();
  std::map<int, int> left_out;  // by error
  for (int64_t call = 1; call <= calls; ++call) {
    for (const int error : {3000, 4000, 4004}) {
      const auto result = plan(call, error);
      EXPECT_EQ(fake.Leaks(), "") << call;
      if (fake.FailedCall() == "BackendDestroyDescriptor") {
        EXPECT_TRUE(result.ok()) << call;
        continue;
      }
      if (result.ok()) {
        // A proposal that turns out not to be possible is left out for the next one. So are the
        // fallback's proposals as a whole.
        EXPECT_NE(error, 4004) << call;
        EXPECT_FALSE(result->empty()) << call;
        left_out[error] += 1;
        continue;
      }
      EXPECT_EQ(result.status().code(), error == 3000   ? absl::StatusCode::kUnimplemented
                                        : error == 4000 ? absl::StatusCode::kInternal
                                                        : absl::StatusCode::kResourceExhausted);
      EXPECT_THAT(std::string(result.status().message()),
                  HasSubstr(": injected (" + std::to_string(error) + ")"));
    }
  }
  EXPECT_GT(left_out[3000], 0);
  EXPECT_EQ(left_out[4000], left_out[3000]);
  std::printf("%lld calls, each failed once with each of three errors\n",
              static_cast<long long>(calls));
}

TEST(CudnnConvolution, WrongOnesAreRefused) {
  FakeCudnn fake;
  const auto refusal = [&](auto change) {
    CudnnConvolution conv = Same(2, DType::kF32, true, 1, 1);
    change(conv);
    const auto planned = PlanConvolution(fake.table(), conv, {}, "{}", {});
    return planned.ok() ? absl::StatusCode::kOk : planned.status().code();
  };
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(refusal([](CudnnConvolution&) {}), absl::StatusCode::kOk);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.activation = CudnnActivation::kRelu; }), kBad);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.residual = true; }), kBad);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.w[1] = 3; }), kBad);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.y[1] = 32; }), kBad);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.x[2] = 0; }), kBad);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.strides = {1}; }), kBad);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.w.pop_back(); }), kBad);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.dtype = DType::kF64; }),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace mendel::cuda
