// The text that `mendel explain --emit-cuda` writes: what its first lines name, and that it depends
// on nothing but the graph.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/testing/correction_case.h"
#include "runtime/backend.h"
#include "runtime/kernel_text.h"

namespace mendel::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

Graph Subject() {
  return CorrectedConv({.x = {2, 8, 13, 12},
                        .w = {20, 8, 3, 3},
                        .strides = {1, 1},
                        .dilations = {1, 1},
                        .pads = {1, 1, 1, 1}},
                       {{{0, 0, 3, 0}, {2, 20, 5, 12}}, {{0, 0, 8, 2}, {2, 20, 13, 9}}});
}

TEST(KernelWriter, NamesMutantBoxesAndShapes) {
  const KernelWriter* writer = FindKernelWriter("cuda");
  ASSERT_NE(writer, nullptr);
  EXPECT_THAT(writer->Describe(), SizeIs(testing::Ge(4u)));
  const auto texts = writer->Write(Subject(), {.estimates = true});
  ASSERT_TRUE(texts.ok()) << texts.status();
  ASSERT_THAT(texts->kernels, SizeIs(1)) << "one launch a mutant";
  EXPECT_THAT(texts->refused, SizeIs(0));
  const std::string& text = texts->kernels[0].text;
  EXPECT_THAT(text, HasSubstr("// mutant:   Patch corrected"));
  EXPECT_THAT(text, HasSubstr("[0:2, 0:20, 3:5, 0:12]"));
  EXPECT_THAT(text, HasSubstr("[0:2, 0:20, 8:13, 2:9]"));
  EXPECT_THAT(text, HasSubstr("kernel 3x3, strides 1x1"));
  EXPECT_THAT(text, HasSubstr("epilogue: bias, add, relu"));
  EXPECT_THAT(text, HasSubstr("estimate:"));
  EXPECT_THAT(text, Not(HasSubstr("#include")));
  EXPECT_THAT(text, Not(HasSubstr("$")));
  EXPECT_EQ(writer->Write(Subject(), {})->kernels[0].text, text);
  EXPECT_NE(writer->Write(Subject(), {.channels_last = true})->kernels[0].text, text);
  for (const KernelEstimate& estimate : texts->kernels[0].estimates)
    EXPECT_GT(estimate.kernel_seconds, 0) << estimate.device;
}

TEST(CudaBackend, ReportsWhatIsMissing) {
  const Backend* backend = FindBackend("cuda");
  ASSERT_NE(backend, nullptr);
  EXPECT_EQ(backend->Identity(), backend->Identity());
  const absl::Status probe = backend->Probe();
  if (probe.ok()) {
    EXPECT_THAT(backend->Identity(), HasSubstr(":sm_"));  // nothing is missing
    return;
  }
  EXPECT_NE(probe.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(probe.message()),
              HasSubstr("without a GPU, 'mendel optimize MODEL --device cuda:sm_90 --offline"));
  EXPECT_EQ(backend->Compile(Subject(), {}).status().code(), probe.code());
}

TEST(EmitKernel, RefusesWhatDoesNotFit) {
  auto one = MakeCase(Subject(), Layout::kNchw, "r_");
  ASSERT_TRUE(one.ok()) << one.status();
  Correction correction = one->patch_kernels.kernels[0].correction;
  const auto refused = [&](auto change) {
    Correction changed = correction;
    change(changed);
    return EmitKernel(changed).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(refused([](Correction& c) { c.boxes.clear(); })));
  EXPECT_TRUE(absl::IsInvalidArgument(refused([](Correction& c) { c.boxes[0].extents[2] = 0; })));
  EXPECT_TRUE(absl::IsInvalidArgument(refused([](Correction& c) { c.boxes[0].w_begin = 1; })));
  EXPECT_TRUE(absl::IsInvalidArgument(refused([](Correction& c) { c.boxes[0].y.base = -1; })));
  EXPECT_TRUE(absl::IsInvalidArgument(refused([](Correction& c) { c.boxes[0].operands.clear(); })));
  EXPECT_TRUE(absl::IsUnimplemented(refused([](Correction& c) { c.dtype = DType::kF64; })));
  EXPECT_TRUE(absl::IsUnimplemented(
      refused([](Correction& c) { c.boxes[0].x_origin[0] = int64_t{1} << 31; })));
}

}  // namespace
}  // namespace mendel::cuda
