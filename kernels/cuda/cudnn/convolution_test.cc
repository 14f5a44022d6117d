// Convolutions planned by cuDNN without a device, and every call of its table failing once.

#include "kernels/cuda/cudnn/convolution.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

struct Form {
  std::string name;
  CudnnConvolution convolution;
};

/// 64 channels, kernel 3, same size.
CudnnConvolution Same(size_t dimensions, DType dtype, bool channels_last, int64_t groups, int64_t dilation) {
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

/// Every form that Mendel builds.
std::vector<Form> Forms() {
  std::vector<Form> forms;
  const auto add = [&](const std::string& name, const CudnnConvolution& conv) {
    for (int epilogue = 0; epilogue < 4; ++epilogue) {
      CudnnConvolution one = conv;
      one.bias = epilogue > 0;
      one.residual = epilogue > 2;
      one.relu = epilogue > 1;
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

TEST(CudnnConvolution, EveryFormIsPlannedWithoutADevice) {
  const auto cudnn = Cudnn::Get();
  if (!cudnn.ok()) {
    EXPECT_FALSE(std::filesystem::exists("/usr/local/cuda/lib64/libcudnn.so.9")) << cudnn.status();
    GTEST_SKIP() << cudnn.status();
  }
  std::printf("cuDNN %d at %s\n", (*cudnn)->version, (*cudnn)->path.c_str());
  for (const Form& form : Forms()) {
    for (const int architecture : {80, 90}) {
      const auto engines =
          PlanConvolution(**cudnn, form.convolution, {.tensor_cores = true, .winograd = true}, *GpuOf(architecture), 1);
      ASSERT_TRUE(engines.ok()) << form.name << " " << engines.status();
      ASSERT_EQ(engines->size(), 1u) << form.name;
      EXPECT_THAT((*engines)[0].plan_json, HasSubstr("engineId")) << form.name;
      EXPECT_GE((*engines)[0].workspace_bytes, 0);
    }
  }
}

TEST(CudnnConvolution, StrictNumbersComeFromOtherEngines) {
  const auto cudnn = Cudnn::Get();
  if (!cudnn.ok()) GTEST_SKIP() << cudnn.status();
  for (const bool last : {false, true}) {
    const CudnnConvolution conv = Same(2, DType::kF32, last, 1, 1);
    const auto strict = PlanConvolution(**cudnn, conv, {}, *GpuOf(90), 64);
    const auto any = PlanConvolution(**cudnn, conv, {.tensor_cores = true, .winograd = true}, *GpuOf(90), 64);
    ASSERT_TRUE(strict.ok() && any.ok()) << strict.status() << any.status();
    EXPECT_FALSE(strict->empty());
    EXPECT_LT(strict->size(), any->size());
    for (const CudnnEngine& engine : *strict) {
      for (const int note : {cudnn::kTensorCores, cudnn::kDownConverts, cudnn::kVaries, cudnn::kFourier, cudnn::kWinograd}) {
        EXPECT_EQ(std::count(engine.notes.begin(), engine.notes.end(), note), 0) << engine.plan_json;
      }
    }
    std::printf("%s: %zu engines, %zu of them strict f32\n", last ? "NHWC" : "NCHW", any->size(), strict->size());
  }
}

/// A table whose descriptors are bytes on the heap.
struct Fake {
  static inline std::set<void*> alive;
  static inline int64_t calls = 0, fail_at = 0;
  static inline int error = 0;
  static inline bool destroying = false;  ///< the call that failed

  static int Answer(bool destroys = false) {
    if (++calls != fail_at) return 0;
    destroying = destroys;
    return error;
  }
  static int Create(int, void** descriptor) {
    if (const int result = Answer()) return result;
    alive.insert(*descriptor = new char);
    return 0;
  }
  static int Destroy(void* descriptor) {
    const int result = Answer(true);
    EXPECT_EQ(alive.erase(descriptor), 1u);
    delete static_cast<char*>(descriptor);
    return result;
  }
  static int Finalize(void* descriptor) {
    EXPECT_EQ(alive.count(descriptor), 1u);
    return Answer();
  }
  static int Set(void* descriptor, int, int, int64_t, const void*) {
    EXPECT_EQ(alive.count(descriptor), 1u);
    return Answer();
  }
  static int Get(void* descriptor, int name, int, int64_t room, int64_t* count, void* values) {
    EXPECT_EQ(alive.count(descriptor), 1u);
    if (const int result = Answer()) return result;
    *count = name == cudnn::kHeuristicResults ? 2 : (name == cudnn::kEngineNotes ? 0 : 1);
    if (name == cudnn::kPlanWorkspace) *static_cast<int64_t*>(values) = 128;
    if (name == cudnn::kPlanJson) *count = 3;
    if (name == cudnn::kPlanJson && room == 3) std::memcpy(values, "{}", 3);
    return 0;
  }
  static void Tell(char* text, size_t size) { std::snprintf(text, size, "made up\nand more"); }

  static const Cudnn& Table() {
    static const Cudnn table = [] {
      Cudnn made;
      made.GetLastErrorString = &Tell;
      made.CreateDescriptor = &Create;
      made.DestroyDescriptor = &Destroy;
      made.Finalize = &Finalize;
      made.SetAttribute = &Set;
      made.GetAttribute = &Get;
      made.version = 91900;
      return made;
    }();
    return table;
  }
};

TEST(CudnnConvolution, EveryCallMayFail) {
  CudnnConvolution conv = Same(2, DType::kF32, true, 1, 1);
  conv.bias = conv.residual = conv.relu = true;
  const auto plan = [&](int64_t call, int error) {
    Fake::calls = 0;
    Fake::fail_at = call;
    Fake::error = error;
    Fake::destroying = false;
    return PlanConvolution(Fake::Table(), conv, {}, *GpuOf(90), 3);
  };
  const auto right = plan(0, 0);
  ASSERT_TRUE(right.ok()) << right.status();
  ASSERT_EQ(right->size(), 3u);
  EXPECT_EQ((*right)[0].plan_json, "{}");
  EXPECT_EQ((*right)[0].workspace_bytes, 128);
  EXPECT_TRUE(Fake::alive.empty());
  const int64_t calls = Fake::calls;
  int left_out = 0;
  for (int64_t call = 1; call <= calls; ++call) {
    for (const int error : {3000, 4000}) {
      const auto result = plan(call, error);
      EXPECT_TRUE(Fake::alive.empty()) << call;
      if (Fake::destroying) {
        EXPECT_TRUE(result.ok()) << call;
        continue;
      }
      if (result.ok()) {
        // An engine that turns out not to be possible is left out for the next one.
        EXPECT_EQ(error, 3000) << call;
        ++left_out;
        continue;
      }
      EXPECT_EQ(result.status().code(), error == 3000 ? absl::StatusCode::kUnimplemented : absl::StatusCode::kInternal);
      EXPECT_THAT(std::string(result.status().message()), HasSubstr(": made up (" + std::to_string(error) + ")"));
    }
  }
  EXPECT_GT(left_out, 0);
  std::printf("%lld calls, each failed once with each of two errors\n", static_cast<long long>(calls));
}

TEST(CudnnConvolution, WrongOnesAreRefused) {
  const auto refusal = [](auto change) {
    CudnnConvolution conv = Same(2, DType::kF32, true, 1, 1);
    change(conv);
    const auto planned = PlanConvolution(Fake::Table(), conv, {}, *GpuOf(90), 1);
    return planned.ok() ? absl::StatusCode::kOk : planned.status().code();
  };
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  Fake::fail_at = 0;
  EXPECT_EQ(refusal([](CudnnConvolution&) {}), absl::StatusCode::kOk);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.relu = true; }), kBad);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.residual = true; }), kBad);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.w[1] = 3; }), kBad);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.y[1] = 32; }), kBad);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.x[2] = 0; }), kBad);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.strides = {1}; }), kBad);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.w.pop_back(); }), kBad);
  EXPECT_EQ(refusal([](CudnnConvolution& c) { c.dtype = DType::kF64; }), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace mendel::cuda
