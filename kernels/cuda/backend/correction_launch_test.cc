// Tests of corrections in whole plans on the fake driver: in place, in one launch, and what becomes
// of the nodes that they replace.

#include "kernels/cuda/backend/correction_launch.h"

#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/emitter.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/nvrtc/architectures.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "kernels/cuda/nvrtc/expect_compiled.h"
#include "kernels/cuda/testing/corrected_plan.h"
#include "kernels/cuda/testing/correction_case.h"
#include "kernels/cuda/testing/expect_corrected.h"
#include "kernels/cuda/testing/fake/fake_driver.h"
#include "runtime/kernel_text.h"

namespace mendel::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

/// The nodes around a Patch of a test's own graph, whose mutant is an Input.
struct Around {
  bool computed = true;    // the mutant is computed, by one launch
  bool is_output = false;  // the mutant is an output of the graph too
  bool read_later = false;
  bool followed = false;  // by an elementwise operator

  bool in_place() const { return computed && !is_output && !read_later; }
  size_t launches() const {
    return (computed ? 1 : 0) + (in_place() ? 0 : 1) + (read_later || followed ? 1 : 0);
  }
};

Graph With(const Around& around, const Graph& corrected) {
  GraphBuilder builder("corrected");
  std::vector<ValueId> inputs;
  ValueId mutant;
  for (const int32_t id : corrected.inputs()) {
    const std::string& name = InputName(corrected.node(id));
    inputs.push_back(builder.Input(name, corrected.node(id).outputs[0]));
    if (name != "mutant") continue;
    if (around.computed) inputs.back() = *builder.Add("Neg", {inputs.back()});
    mutant = inputs.back();
  }
  ValueId y = Inline(corrected, inputs, builder)->at(0);
  if (around.read_later) y = *builder.Add("Add", {y, mutant});
  if (around.followed) y = *builder.Add("Neg", {y});
  builder.Output("y", y);
  if (around.is_output) builder.Output("before", mutant);
  return *builder.Build();
}

Graph Seams(DType dtype) {
  return CorrectedConv(
      {.x = {2, 5, 9, 8},
       .w = {6, 5, 3, 3},
       .strides = {1, 1},
       .dilations = {1, 1},
       .pads = {1, 1, 1, 1},
       .dtype = dtype},
      {{{0, 0, 3, 0}, {2, 6, 5, 8}}, {{1, 0, 7, 2}, {2, 6, 9, 5}}, {{0, 2, 7, 0}, {1, 5, 8, 8}}});
}

CorrectedPlan PlanOf(const Graph& graph, const std::string& prefix = "",
                     bool reuse_memory = false) {
  auto plan = MakeCorrectedPlan(graph, prefix, reuse_memory);
  EXPECT_TRUE(plan.ok()) << plan.status() << PrintGraph(graph);
  return *std::move(plan);
}

bool SameBuffer(const DeviceBuffer& a, const DeviceBuffer& b) {
  return a.allocation == b.allocation && a.offset == b.offset;
}

TEST(CorrectionLaunch, RandomCorrectionsInPlans) {
  std::vector<CorrectedPlan> plans;
  std::map<std::string, int> counts;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    const CorrectionCase one = RandomCase(seed);
    const Around around{seed % 8 != 0, seed % 5 == 0, seed % 7 == 0, seed % 2 == 0};
    CorrectedPlan plan = PlanOf(With(around, one.graph), Cat("c", seed, "_"), seed % 3 == 0);
    plan.description = one.description;
    const DType dtype = one.patch_kernels.kernels[0].correction.dtype;
    // Chains of f32 round; a last addition or two of small integers does not.
    plan.tolerance = one.exact ? 0 : 1e-5;
    const auto corrections = LaunchesBy(plan.program, "correction:");
    EXPECT_THAT(corrections, SizeIs(one.patch_kernels.kernels.size())) << one.description;
    EXPECT_EQ(plan.program.launches.size(), around.launches() + corrections.size())
        << one.description;
    EXPECT_THAT(LaunchesBy(plan.program, "copy"), SizeIs(around.in_place() ? 0 : 1));
    EXPECT_THAT(corrections.back()->info.kernel,
                HasSubstr(around.in_place() ? "in place" : "in a copy"));
    if (around.computed) {
      // The launch of the mutant is the first.
      EXPECT_EQ(
          SameBuffer(plan.program.launches[0].pointers.back(), corrections.back()->pointers.back()),
          around.in_place());
    }
    for (const DeviceLaunch& launch : plan.program.launches) {
      if (launch.info.kernel.starts_with("correction:")) continue;
      for (const int32_t id : launch.info.nodes)
        EXPECT_NE(plan.graph.node(id).op->name, "Conv") << one.description;
    }
    ++counts[Cat(DTypeName(dtype), around.in_place() ? " in place" : " in a copy",
                 one.patch_kernels.kernels.size() > 1 ? ", a chain" : "")];
    plans.push_back(std::move(plan));
  }
  ExpectAllRight(plans);
  for (const auto& [what, count] : counts) std::printf("%3d %s\n", count, what.c_str());
  for (const char* what : {"f32 in place", "f16 in place", "bf16 in place", "f32 in place, a chain",
                           "f32 in a copy"}) {
    EXPECT_GT(counts[what], 0) << what;
  }
}

TEST(CorrectionLaunch, AllBoxesInOneLaunchOfThePlansOwnText) {
  const KernelWriter* writer = FindKernelWriter("cuda");
  ASSERT_NE(writer, nullptr);
  std::vector<CorrectedPlan> plans;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const bool reuse_memory : {false, true}) {
      const Graph graph = With({.followed = true}, Seams(dtype));
      const CorrectedPlan named = PlanOf(graph);
      const auto texts = writer->Write(graph, {});
      ASSERT_TRUE(texts.ok()) << texts.status();
      ASSERT_THAT(texts->kernels, SizeIs(1));
      EXPECT_THAT(named.program.texts, testing::Contains(texts->kernels[0].text)) << "unchanged";
      plans.push_back(PlanOf(graph, Cat("d", plans.size(), "_"), reuse_memory));
      const DeviceProgram& program = plans.back().program;
      ASSERT_THAT(program.launches, SizeIs(3)) << "the mutant, its correction, what follows";
      const DeviceLaunch& correction = program.launches[1];
      EXPECT_THAT(correction.info.kernel, HasSubstr("3 boxes in place"));
      EXPECT_EQ(graph.node(correction.info.nodes[0]).op->name, "Patch");
      EXPECT_GT(correction.info.nodes.size(), 9u)
          << "slices, convolutions, additions and activations of three boxes";
      EXPECT_GT(correction.info.flops, 0);
      EXPECT_TRUE(SameBuffer(program.launches[0].pointers.back(), correction.pointers.back()));
      EXPECT_TRUE(SameBuffer(program.launches[2].pointers.front(), correction.pointers.back()));
      plans.back().description = DTypeName(dtype);
    }
  }
  ExpectAllRight(plans);
}

/// A mutant [1, 2, 6, 3] whose rows are boxes that a convolution of one tap computes.
class Rows {
 public:
  Rows() : e_("rows"), x_(e_.Input("x", {DType::kF32, {1, 2, 6, 3}})), mutant_(e_.Op("Neg", {x_})) {
    w_ = e_.Constant(
        Tensor::FromDoubles({DType::kF32, {2, 2, 1, 1}}, std::vector<double>{1, -2, 3, 2}), "w");
  }

  ValueId x() const { return x_; }
  ValueId mutant() const { return mutant_; }
  Box At(int64_t row, int64_t rows = 1) const { return {{0, 0, row, 0}, {1, 2, row + rows, 3}}; }
  ValueId Cut(ValueId of, int64_t row, int64_t rows = 1) { return e_.Cut(of, At(row, rows)); }
  ValueId Conv(ValueId of) {
    const Ints ones = {1, 1};
    return e_.Op(
        "Conv", {of, w_},
        {{"strides", ones}, {"dilations", ones}, {"pads", Ints(4, 0)}, {"group", int64_t{1}}});
  }
  ValueId Patch(ValueId base, std::vector<ValueId> pieces, const Boxes& boxes) {
    pieces.insert(pieces.begin(), base);
    return e_.Op("Patch", pieces, {{"boxes", boxes}});
  }
  Emitter& emitter() { return e_; }
  Graph Finish(ValueId y) {
    e_.Output("y", y);
    auto graph = e_.Finish();
    EXPECT_TRUE(graph.ok()) << graph.status();
    return *std::move(graph);
  }

 private:
  Emitter e_;
  ValueId x_, mutant_, w_;
};

/// A box a part of one kernel of three taps a dimension, every one an odd part of its input.
Graph PartsOfAKernel(size_t spatial, DType dtype, const Boxes& parts) {
  Emitter e("parts");
  Shape extents(spatial, 6);
  extents[0] = 9;
  Shape shape = {2, 5}, kernel = {6, 5};
  shape.insert(shape.end(), extents.begin(), extents.end());
  kernel.insert(kernel.end(), spatial, 3);
  const ValueId x = e.Input("x", {dtype, shape});
  std::vector<double> values;
  Rng rng(5);
  for (int64_t i = 0; i < NumElements(kernel); ++i)
    values.push_back(static_cast<double>(rng.Between(-2, 2)));
  const ValueId w = e.Constant(Tensor::FromDoubles({dtype, kernel}, values), "w");
  Shape whole = shape;
  whole[1] = kernel[0];
  std::vector<ValueId> operands = {e.Op("Neg", {e.Input("mutant", {dtype, whole})})};
  Boxes boxes;
  for (size_t k = 0; k < parts.size(); ++k) {
    Box target{{0, 0}, {2, 6}}, read{{0, 0}, {2, 5}}, part{{0, 0}, {6, 5}};
    for (size_t d = 0; d < spatial; ++d) {
      const int64_t extent = d == 0 ? 1 : 3, begin = d == 0 ? static_cast<int64_t>(2 * k) : 1;
      target.begin.push_back(begin);
      target.end.push_back(begin + extent);
      part.begin.push_back(parts[k].begin[d]);
      part.end.push_back(parts[k].end[d]);
      read.begin.push_back(1);
      read.end.push_back(extent + parts[k].end[d] - parts[k].begin[d]);
    }
    const Ints ones(spatial, 1);
    operands.push_back(e.Op("Conv", {e.Cut(x, read), e.Cut(w, part)},
                            {{"strides", ones},
                             {"dilations", ones},
                             {"pads", Ints(2 * spatial, 0)},
                             {"group", int64_t{1}}}));
    boxes.push_back(target);
  }
  e.Output("y", e.Op("Patch", operands, {{"boxes", boxes}}));
  auto graph = e.Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

Graph PartsOfAKernel(size_t spatial, DType dtype) {
  Boxes parts;
  for (const auto& [first, others] : {std::pair<Box, Box>{{{0}, {1}}, {{0}, {3}}},
                                      {{{2}, {3}}, {{0}, {2}}},
                                      {{{0}, {3}}, {{0}, {3}}},
                                      {{{1}, {3}}, {{1}, {2}}}}) {
    Box part = first;
    part.begin.insert(part.begin.end(), spatial - 1, others.begin[0]);
    part.end.insert(part.end.end(), spatial - 1, others.end[0]);
    parts.push_back(part);
  }
  return PartsOfAKernel(spatial, dtype, parts);
}

TEST(CorrectionLaunch, PartsOfAKernelShareALaunch) {
  std::vector<CorrectedPlan> plans;
  const auto add = [&](const std::string& description, const Graph& graph, size_t boxes,
                       bool differ) {
    plans.push_back(PlanOf(graph, Cat("k", plans.size(), "_")));
    const DeviceProgram& program = plans.back().program;
    plans.back().description = description;
    ASSERT_THAT(program.launches, SizeIs(2)) << description;
    EXPECT_THAT(program.launches[1].info.kernel,
                HasSubstr(Cat(boxes, boxes == 1 ? " box" : " boxes", " in place")))
        << description;
    EXPECT_EQ(program.texts[1].find("box.taps_") != std::string::npos, differ) << description;
    EXPECT_THAT(program.texts[1], HasSubstr("RowOfPart")) << description;
    EXPECT_THAT(program.texts[1], HasSubstr(", taps [")) << description;
  };
  for (const size_t spatial : {1, 2, 3})
    add(Cat(spatial, " dimensions"), PartsOfAKernel(spatial, DType::kF32), 4, true);
  add("f16", PartsOfAKernel(2, DType::kF16), 4, true);
  const Box row{{2, 0}, {3, 3}};
  add("one part for all boxes", PartsOfAKernel(2, DType::kBF16, {row, row, row}), 3, false);
  ExpectAllRight(plans);
  // A planted error: every part reads the weights of the kernel's first taps.
  std::string& text = plans[1].program.texts[1];
  const std::string right = "static_cast<long long>(RowOfPart(k))";
  ASSERT_NE(text.find(right), std::string::npos);
  text.replace(text.find(right), right.size(), "static_cast<long long>(k)");
  FakeDriver driver;
  EXPECT_THAT(FailureOf(driver.table(), plans[1]), HasSubstr("element"));
}

TEST(CorrectionLaunch, WhatKernelsReadOfTheMutantIsNotOverwrittenBefore) {
  std::vector<CorrectedPlan> plans;
  const auto add = [&](const std::string& description, const auto& make, const std::string& where) {
    Rows rows;
    const ValueId y = make(rows);
    plans.push_back(PlanOf(rows.Finish(y), Cat("r", plans.size(), "_")));
    plans.back().description = description;
    const auto corrections = LaunchesBy(plans.back().program, "correction:");
    ASSERT_FALSE(corrections.empty()) << description;
    for (const DeviceLaunch* launch : corrections)
      EXPECT_THAT(launch->info.kernel, HasSubstr(where)) << description;
  };
  add(
      "a convolution of the input",
      [](Rows& r) { return r.Patch(r.mutant(), {r.Conv(r.Cut(r.x(), 4))}, {r.At(1)}); },
      "in place");
  add(
      "a convolution of the mutant",
      [](Rows& r) { return r.Patch(r.mutant(), {r.Conv(r.Cut(r.mutant(), 4))}, {r.At(1)}); },
      "in a copy");
  const auto added = [](int64_t row) {
    return [row](Rows& r) {
      const ValueId sum = r.emitter().Add(r.Cut(r.mutant(), row, 2), r.Conv(r.Cut(r.x(), 4, 2)));
      return r.Patch(r.mutant(), {sum}, {r.At(1, 2)});
    };
  };
  add("an addend that is the box itself", added(1), "in place");
  add("an addend that is a row further on", added(2), "in a copy");
  add(
      "two boxes, each the other's addend",
      [](Rows& r) {
        std::vector<ValueId> pieces;
        for (const int64_t row : {0, 3})
          pieces.push_back(r.emitter().Add(r.Cut(r.mutant(), 3 - row), r.Conv(r.Cut(r.x(), row))));
        return r.Patch(r.mutant(), pieces, {r.At(0), r.At(3)});
      },
      "in a copy");
  ExpectAllRight(plans);
  // A planted error: the last correction runs as if it were in place.
  std::vector<DeviceBuffer>& pointers = plans.back().program.launches.back().pointers;
  ASSERT_THAT(pointers, SizeIs(4)) << "x, weights, addend, result";
  pointers[2] = pointers[3];
  FakeDriver driver;
  EXPECT_THAT(FailureOf(driver.table(), plans.back()), HasSubstr("read and written"));
}

TEST(CorrectionLaunch, CorrectionsOfCorrectionsStayInPlace) {
  Rows rows;
  const ValueId first = rows.Patch(rows.mutant(), {rows.Conv(rows.Cut(rows.x(), 0))}, {rows.At(1)});
  const ValueId relu = rows.emitter().Op("Relu", {rows.Conv(rows.Cut(rows.x(), 3))});
  const CorrectedPlan plan = PlanOf(rows.Finish(rows.Patch(first, {relu}, {rows.At(3)})));
  ASSERT_THAT(plan.program.launches, SizeIs(3));
  for (const DeviceLaunch& launch : plan.program.launches) {
    EXPECT_TRUE(SameBuffer(launch.pointers.back(), plan.program.launches[0].pointers.back()));
  }
  ExpectAllRight({plan});
}

TEST(CorrectionLaunch, PiecesThatOthersReadAreComputedForThem) {
  // The slice and the piece are outputs. The correction computes its box on its own, and all other
  // launches remain.
  Rows rows;
  const ValueId cut = rows.Cut(rows.x(), 4);
  const ValueId piece = rows.Conv(cut);
  rows.emitter().Output("piece", piece);
  rows.emitter().Output("cut", cut);
  const CorrectedPlan plan = PlanOf(rows.Finish(rows.Patch(rows.mutant(), {piece}, {rows.At(1)})));
  EXPECT_THAT(LaunchesBy(plan.program, "correction:"), SizeIs(1));
  EXPECT_THAT(plan.program.launches, SizeIs(4));
  ExpectAllRight({plan});
}

TEST(CorrectionLaunch, WhatNoKernelComputesIsCopiedAndReported) {
  Rows rows;
  const ValueId gelu = rows.emitter().Op("Gelu", {rows.Conv(rows.Cut(rows.x(), 4))});
  CorrectedPlan plan = PlanOf(rows.Finish(rows.Patch(rows.mutant(), {gelu}, {rows.At(1)})));
  plan.tolerance = 1e-5;
  EXPECT_THAT(LaunchesBy(plan.program, "correction:"), SizeIs(0));
  ASSERT_FALSE(plan.program.launches.empty());
  EXPECT_THAT(plan.program.launches.back().info.kernel,
              HasSubstr("; boxes copied (no kernel computes Gelu"));
  ExpectAllRight({plan});
}

/// Patches of `boxes` boxes each, of one element at uneven places: four numbers an entry of a
/// table.
Graph WithManyBoxes(int64_t patches, int64_t boxes) {
  Emitter e("many");
  const int64_t stride = patches + 1, extent = stride * boxes + 1;
  const ValueId x = e.Input("x", {DType::kF32, {1, 1, 1, extent}});
  const ValueId w =
      e.Constant(Tensor::FromDoubles({DType::kF32, {1, 1, 1, 1}}, std::vector<double>{2}), "w");
  const Ints ones = {1, 1};
  ValueId y = e.Op("Neg", {x});
  for (int64_t k = 0; k < patches; ++k) {
    std::vector<ValueId> operands = {y};
    Boxes wrong;
    for (int64_t box = 0; box < boxes; ++box) {
      const int64_t at = stride * box + k;
      wrong.push_back({{0, 0, 0, at}, {1, 1, 1, at + 1}});
      const ValueId cut = e.Cut(x, {{0, 0, 0, extent - 2 - at}, {1, 1, 1, extent - 1 - at}});
      operands.push_back(e.Op(
          "Conv", {cut, w},
          {{"strides", ones}, {"dilations", ones}, {"pads", Ints(4, 0)}, {"group", int64_t{1}}}));
    }
    y = e.Op("Patch", operands, {{"boxes", wrong}});
  }
  e.Output("y", y);
  auto graph = e.Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

TEST(CorrectionLaunch, EveryKernelHasAConstantMemoryOfItsOwn) {
  const Graph graph = WithManyBoxes(2, 1750);
  const CorrectionPlan plan = PlanCorrections(graph, ConstantExpressions(graph));
  ASSERT_THAT(plan.corrections, SizeIs(2));
  for (const PlannedCorrection& correction : plan.corrections) {
    ASSERT_THAT(correction.shapes, SizeIs(1));
    EXPECT_GE(correction.shapes[0].constant_bytes, 40 << 10);
  }
  const CorrectedPlan corrected = PlanOf(graph);
  EXPECT_THAT(LaunchesBy(corrected.program, "correction:"), SizeIs(2));
  ExpectAllRight({corrected});
}

TEST(CorrectionLaunch, AKernelThatTakesMoreIsRefused) {
  const Graph graph = WithManyBoxes(1, 2800);
  const CorrectionPlan plan = PlanCorrections(graph, ConstantExpressions(graph));
  EXPECT_THAT(plan.corrections, SizeIs(0));
  ASSERT_THAT(plan.refused, SizeIs(1));
  EXPECT_THAT(plan.refused.begin()->second,
              HasSubstr("bytes of constant memory, of which there are 65536"));
}

/// NVRTC compiles the module of a whole plan, with the corrections' texts among the groups' texts.
TEST(CorrectionLaunch, ModuleCompilesForAGpu) {
  const Compiler* const compiler = FoundCompiler();
  if (compiler == nullptr) return;
  std::vector<CorrectedPlan> plans;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    plans.push_back(PlanOf(With({.followed = true}, Seams(dtype)), Cat("d", plans.size(), "_")));
  }
  plans.push_back(PlanOf(PartsOfAKernel(3, DType::kF32), "k_"));
  ASSERT_EQ(plans.size() + 1, kCompiledArchitectures.size());
  // Each plan for one of the architectures: 75, 80, 90, 100, 120 in turn.
  for (size_t k = 0; k < plans.size() + 1; ++k) {
    CompiledWithoutSpills(*compiler, ModuleOf({plans[k % plans.size()]}), "plans",
                          kCompiledArchitectures[k]);
  }
}

}  // namespace
}  // namespace mendel::cuda
