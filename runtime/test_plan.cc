#include "runtime/test_plan.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

Tensor Random(Rng& rng, Shape shape) {
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (double& value : values) value = rng.Normal();
  return Tensor::FromDoubles({DType::kF32, std::move(shape)}, values);
}

Plan PlanOf(const Graph& graph, const std::string& backend) {
  Plan plan;
  plan.graph = graph;
  plan.baseline = graph;
  plan::Target& target = *plan.info.mutable_target();
  target.set_backend(backend);
  const Backend* found = FindBackend(backend);
  target.set_identity(found != nullptr ? found->Identity() : "");
  target.set_threads(1);
  target.set_numerics("default");
  plan.info.add_device_conditions("before: 300 of 1980 MHz");
  plan.info.add_device_conditions("after: 1500 of 1980 MHz");
  plan.info.set_weights(plan::WEIGHTS_MODE_SYMBOLIC);
  plan.info.set_model_name(graph.name() + ".onnx");
  return plan;
}

}  // namespace

Plan SmallPlan(const std::string& backend, int64_t rows) {
  Rng rng(7);
  GraphBuilder builder("small");
  const ValueId x = builder.Input("x", {DType::kF32, {rows, 8}});
  const ValueId w1 = builder.Constant(Random(rng, {8, 6}), "w1");
  const ValueId w2 = builder.Constant(Random(rng, {6, 3}), "w2");
  const auto hidden = builder.Add("MatMul", {x, w1}, {}, "fc1");
  MENDEL_CHECK(hidden.ok());
  const auto active = builder.Add("Relu", {*hidden}, {}, "act");
  MENDEL_CHECK(active.ok());
  const auto y = builder.Add("MatMul", {*active, w2}, {}, "fc2");
  MENDEL_CHECK(y.ok());
  builder.Output("y", *y);
  auto graph = builder.Build();
  MENDEL_CHECK(graph.ok());

  return PlanOf(*graph, backend);
}

std::vector<Plan> SmallBundle(const std::string& backend) {
  std::vector<Plan> members;
  for (const int64_t rows : {2, 4, 16}) members.push_back(SmallPlan(backend, rows));
  return members;
}

Plan CorrectedPlan(const std::string& backend) {
  Rng rng(7);
  GraphBuilder builder("corrected");
  const auto add = [&](const char* op, std::vector<ValueId> inputs, Attributes attrs,
                       const char* name) {
    const auto value = builder.Add(op, std::move(inputs), std::move(attrs), name);
    MENDEL_CHECK(value.ok());
    return *value;
  };
  const ValueId x = builder.Input("x", {DType::kF32, {1, 4, 8, 8}});
  const ValueId w = builder.Constant(Random(rng, {4, 4, 3, 3}), "w");
  const auto window = [](const Ints& pads) {
    return Attributes{
        {"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", pads}, {"group", int64_t{1}}};
  };
  const ValueId whole = add("Conv", {x, w}, window({1, 1, 1, 1}), "whole");
  const Ints begin = {0, 0, 2, 0}, end = {1, 4, 5, 8};
  const ValueId cut =
      add("Slice", {x}, {{"starts", begin}, {"ends", end}, {"steps", Ints{1, 1, 1, 1}}}, "cut");
  const ValueId piece = add("Conv", {cut, w}, window({0, 1, 0, 1}), "piece");
  const Box box{{0, 0, 3, 0}, {1, 4, 4, 8}};
  builder.Output("y", add("Patch", {whole, piece}, {{"boxes", Boxes{box}}}, "corrected"));
  const auto graph = builder.Build();
  MENDEL_CHECK(graph.ok());
  Plan plan = PlanOf(*graph, backend);
  plan::AppliedMutant& mutant = *plan.info.add_mutants();
  mutant.set_rule("cut_in_two");
  mutant.set_claim("partial");
  mutant.add_where("whole");
  mutant.set_mending("recompute");
  plan::MendedOutput& output = *mutant.add_mended();
  output.set_output("y");
  output.set_elements(256);
  output.set_wrong_elements(box.Volume());
  for (const int64_t extent : {1, 4, 8, 8}) output.add_shape(extent);
  plan::BoxProto& wrong = *output.add_boxes();
  for (const int64_t begin : box.begin) wrong.add_begin(begin);
  for (const int64_t end : box.end) wrong.add_end(end);
  const auto kernels = WriteKernels(plan.graph);
  MENDEL_CHECK(kernels.ok());
  plan.kernels = *kernels;
  return plan;
}

std::string TestPath(const std::string& name) {
  return (std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + "-" + name))
      .string();
}

std::vector<std::byte> FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

void Seal(std::vector<std::byte>& file, std::vector<SectionEntry> entries, uint32_t version) {
  for (SectionEntry& entry : entries)
    entry.hash = SectionHash(std::span(file).subspan(entry.offset, entry.size));
  const std::vector<std::byte> header = EncodeHeader(entries, version);
  std::copy(header.begin(), header.end(), file.begin());
}

}  // namespace mendel
