// Layout changes that write around the boxes that the same launch corrects, and sums that two
// launches make, in whole plans.

#include "kernels/cuda/backend/corrected_copy.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/emitter.h"
#include "graph/rewrite.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/executable.h"
#include "kernels/cuda/emit/from_graph.h"
#include "kernels/cuda/testing/corrected_plan.h"
#include "kernels/cuda/testing/correction_case.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/expect_corrected.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

enum class Change { kTranspose, kReshape, kNegated };

/// `corrected` with its mutant, an Input, moved first.
Graph WithMovedMutant(const Graph& corrected, Change change) {
  GraphBuilder builder("moved");
  std::vector<ValueId> inputs;
  for (const int32_t id : corrected.inputs()) {
    const std::string& name = InputName(corrected.node(id));
    TensorType type = corrected.node(id).outputs[0];
    if (name != "mutant") {
      inputs.push_back(builder.Input(name, type));
      continue;
    }
    const Shape shape = type.shape;
    if (change == Change::kTranspose) {
      type.shape = {shape[0], shape[2], shape[3], shape[1]};
      inputs.push_back(
          *builder.Add("Transpose", {builder.Input(name, type)}, {{"perm", Ints{0, 3, 1, 2}}}));
    } else {
      type.shape = {NumElements(shape)};
      inputs.push_back(*builder.Add("Reshape", {builder.Input(name, type)}, {{"shape", shape}}));
    }
    if (change == Change::kNegated) inputs.back() = *builder.Add("Neg", {inputs.back()});
  }
  builder.Output("y", Inline(corrected, inputs, builder)->at(0));
  return *builder.Build();
}

/// Boxes that begin and end amid the vectors of rows of seven.
Graph Seams(DType dtype) {
  return CorrectedConv(
      {.x = {2, 5, 9, 7},
       .w = {3, 5, 3, 3},
       .strides = {1, 1},
       .dilations = {1, 1},
       .pads = {1, 1, 1, 1},
       .dtype = dtype},
      {{{0, 0, 3, 0}, {2, 3, 5, 7}}, {{1, 0, 7, 2}, {2, 3, 9, 5}}, {{0, 1, 7, 0}, {1, 3, 8, 6}}});
}

/// A layer whose sums are long, and its boxes few.
Graph LongSums(int64_t channels) {
  return CorrectedConv({.x = {1, channels, 6, 6},
                        .w = {8, channels, 3, 3},
                        .strides = {1, 1},
                        .dilations = {1, 1},
                        .pads = {1, 1, 1, 1}},
                       {{{0, 0, 2, 0}, {1, 8, 4, 6}}, {{0, 0, 4, 1}, {1, 8, 6, 3}}});
}

CorrectedPlan PlanOf(const Graph& graph, const std::string& prefix) {
  auto plan = MakeCorrectedPlan(graph, prefix, false);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

TEST(CorrectedCopy, IsOneLaunchThatWritesEveryElementOnce) {
  std::vector<CorrectedPlan> plans;
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    for (const Change change : {Change::kTranspose, Change::kReshape, Change::kNegated}) {
      const Graph graph = WithMovedMutant(Seams(dtype), change);
      plans.push_back(PlanOf(graph, Cat("m", plans.size(), "_")));
      const DeviceProgram& program = plans.back().program;
      plans.back().description = Cat(DTypeName(dtype), ", change ", static_cast<int>(change));
      ASSERT_THAT(program.launches, SizeIs(1)) << plans.back().description;
      EXPECT_THAT(program.launches[0].info.kernel, HasSubstr("3 boxes in place with the copy"));
      EXPECT_EQ(program.texts[0].find("unsigned spared = 0") != std::string::npos,
                change != Change::kTranspose)
          << "by vectors";
    }
  }
  ExpectAllRight(plans);
}

TEST(CorrectedCopy, HoldsTheCorrectionsTextUnchanged) {
  const Graph graph = WithMovedMutant(Seams(DType::kF32), Change::kTranspose);
  const auto patch_kernels = PatchKernelsOf(graph, graph.outputs()[0].value.node, Layout::kNchw);
  ASSERT_TRUE(patch_kernels.ok()) << patch_kernels.status();
  const auto emitted = EmitKernel(patch_kernels->kernels.back().correction);
  ASSERT_TRUE(emitted.ok()) << emitted.status();
  EXPECT_THAT(PlanOf(graph, "").program.texts[0], StartsWith(emitted->body));
}

TEST(CorrectedCopy, ACopyThatDoesNotSpareABoxIsSeen) {
  for (const Change change : {Change::kTranspose, Change::kReshape}) {
    CorrectedPlan plan = PlanOf(WithMovedMutant(Seams(DType::kF32), change), "");
    std::string& text = plan.program.texts[0];
    // The first box is two rows of all channels and images.
    const size_t row = text.find(" < 5)");
    ASSERT_NE(row, std::string::npos);
    text.replace(row, 5, " < 4)");
    FakeDriver driver;
    EXPECT_THAT(FailureOf(driver.table(), plan), HasSubstr("written twice"));
  }
}

TEST(CorrectedCopy, AnElementThatNobodyWritesIsSeen) {
  CorrectedPlan plan = PlanOf(WithMovedMutant(Seams(DType::kF32), Change::kTranspose), "");
  std::string& text = plan.program.texts[0];
  const size_t row = text.find(" < 5)");
  ASSERT_NE(row, std::string::npos);
  text.replace(row, 5, " < 6)");
  FakeDriver driver;
  EXPECT_THAT(FailureOf(driver.table(), plan), HasSubstr("element"));
}

TEST(CorrectedCopy, WhatReadsTheMutantOrHasManyBoxesStaysApart) {
  Emitter e("apart");
  const ValueId x = e.Input("x", {DType::kF32, {1, 1, 1, 80}});
  const ValueId w =
      e.Constant(Tensor::FromDoubles({DType::kF32, {1, 1, 1, 1}}, std::vector<double>{2}), "w");
  const Ints ones = {1, 1};
  const auto correct = [&](int64_t boxes, bool adds) {
    const ValueId base = e.Op("Reshape", {e.Input(Cat("m", boxes, adds), {DType::kF32, {80}})},
                              {{"shape", Ints{1, 1, 1, 80}}});
    std::vector<ValueId> operands = {base};
    Boxes wrong;
    for (int64_t box = 0; box < boxes; ++box) {
      wrong.push_back({{0, 0, 0, 2 * box}, {1, 1, 1, 2 * box + 1}});
      const ValueId piece = e.Op(
          "Conv", {e.Cut(x, wrong.back()), w},
          {{"strides", ones}, {"dilations", ones}, {"pads", Ints(4, 0)}, {"group", int64_t{1}}});
      operands.push_back(adds ? e.Add(e.Cut(base, wrong.back()), piece) : piece);
    }
    e.Output(Cat("y", boxes, adds), e.Op("Patch", operands, {{"boxes", wrong}}));
  };
  correct(2, true);
  correct(2, false);
  correct(kMostSpared, false);
  correct(kMostSpared + 1, false);
  auto graph = e.Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const CorrectedPlan plan = PlanOf(*graph, "");
  EXPECT_THAT(plan.program.launches, SizeIs(6)) << "two of four stay apart";
  ExpectAllRight({plan});
}

TEST(DividedSums, AreTwoLaunchesAndTheLastTakesTheCopyAlong) {
  std::vector<CorrectedPlan> plans;
  plans.push_back(PlanOf(WithMovedMutant(LongSums(192), Change::kTranspose), "long_"));
  const std::vector<DeviceLaunch>& launches = plans[0].program.launches;
  ASSERT_THAT(launches, SizeIs(2));
  EXPECT_THAT(launches[0].info.kernel, HasSubstr("_parts 2 boxes in scratch"));
  EXPECT_THAT(launches[1].info.kernel, HasSubstr("2 boxes in place with the copy"));
  EXPECT_GT(launches[0].shape.grid, 8u);
  EXPECT_EQ(launches[1].shape.shared, 0u) << "it adds from memory";
  plans.push_back(PlanOf(WithMovedMutant(LongSums(16), Change::kTranspose), "short_"));
  EXPECT_THAT(plans[1].program.launches, SizeIs(1))
      << "a launch more would cost more than it saves";
  ExpectAllRight(plans);
}

TEST(DividedSums, RoundTheSameWayEveryTime) {
  const CorrectedPlan plan = PlanOf(WithMovedMutant(LongSums(192), Change::kTranspose), "");
  FakeDriver driver;
  const auto executable = MakeExecutable(driver.table(), plan.program, &TextImage);
  ASSERT_TRUE(executable.ok()) << executable.status();
  Rng rng(7);
  std::vector<Tensor> inputs;
  for (const int32_t id : plan.graph.inputs()) {
    const TensorType& type = plan.graph.node(id).outputs[0];
    std::vector<double> values;
    for (int64_t i = 0; i < NumElements(type); ++i)
      values.push_back(static_cast<double>(rng.Between(-1000, 1000)) / 3);
    inputs.push_back(Tensor::FromDoubles(type, values));
  }
  std::vector<std::byte> first;
  for (int run = 0; run < 3; ++run) {
    const auto results = RunOnTensors(**executable, plan.graph, inputs);
    ASSERT_TRUE(results.ok()) << results.status();
    const std::vector<std::byte> bytes((*results)[0].bytes().begin(), (*results)[0].bytes().end());
    if (run == 0) first = bytes;
    EXPECT_EQ(bytes, first);
  }
}

}  // namespace
}  // namespace mendel::cuda
