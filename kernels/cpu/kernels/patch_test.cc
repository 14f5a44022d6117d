// Patches of recomputed boxes on the backend: random convolutions over random values, restricted to
// random boxes and written over something else; against the graph's own meaning in double.

#include <algorithm>
#include <map>
#include <string>

#include "base/random.h"
#include "base/status.h"
#include "graph/emitter.h"
#include "graph/random_graph.h"
#include "graph/restrict.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

/// One convolution with what may follow it, over an input or a computed value.
class Program {
 public:
  explicit Program(Rng& rng) : rng_(rng), spatial_(static_cast<size_t>(rng.Between(1, 3))) {}

  Graph Build() {
    const int64_t groups = rng_.Flip(0.3) ? rng_.Between(2, 4) : 1;
    const int64_t in = groups * rng_.Between(1, 20);
    Shape x_shape = {rng_.Between(1, 4), in};
    Ints strides, dilations, pads(2 * spatial_), kernel;
    for (size_t d = 0; d < spatial_; ++d) {
      kernel.push_back(rng_.Between(1, spatial_ == 3 ? 3 : 5));
      strides.push_back(rng_.Flip(0.7) ? 1 : rng_.Between(1, 3));
      dilations.push_back(rng_.Flip(0.7) ? 1 : 2);
      pads[d] = rng_.Between(0, kernel[d]);
      pads[spatial_ + d] = rng_.Between(0, kernel[d]);
      x_shape.push_back(rng_.Between(dilations[d] * (kernel[d] - 1) + 1, spatial_ == 3 ? 7 : 14));
    }
    ValueId x = e_.Input("x", {DType::kF32, x_shape});
    if (rng_.Flip(0.3)) x = e_.Op("Sigmoid", {x});
    const int64_t out = groups * rng_.Between(1, 20);
    Shape w_shape = {out, in / groups};
    w_shape.insert(w_shape.end(), kernel.begin(), kernel.end());
    std::vector<ValueId> inputs = {x, Weights(w_shape)};
    if (rng_.Flip()) inputs.push_back(Weights({out}));
    const Attributes attrs{
        {"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", groups}};
    ValueId y = e_.Op("Conv", inputs, attrs);
    if (rng_.Flip(0.3)) y = e_.Add(y, e_.Input("r", e_.type(y)));
    constexpr const char* kActivations[] = {"Relu", "Sigmoid", "Tanh", "HardSwish"};
    if (rng_.Flip(0.6)) y = e_.Op(kActivations[rng_.Below(4)], {y});
    e_.Output("y", y);
    const auto graph = e_.Finish();
    EXPECT_TRUE(graph.ok()) << graph.status();
    return *graph;
  }

 private:
  ValueId Weights(const Shape& shape) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = 0.3 * rng_.Normal();
    return e_.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), Cat("w", count_++));
  }

  Rng& rng_;
  size_t spatial_;
  Emitter e_;
  int count_ = 0;
};

/// Disjoint boxes of all channels, thin in one dimension.
std::vector<Box> RandomBoxes(Rng& rng, const Shape& shape) {
  std::vector<Box> boxes;
  size_t along = rng.Below(shape.size() - 1);
  along += along >= 1 ? 1 : 0;
  for (int64_t at = rng.Between(0, 1); at < shape[along];) {
    Box box = Box::Whole(shape);
    box.begin[along] = at;
    box.end[along] = std::min(shape[along], at + rng.Between(1, 2));
    at = box.end[along] + rng.Between(0, 3);
    const size_t cut = rng.Below(shape.size());
    if (cut != 1 && cut != along) box.begin[cut] = rng.Between(0, shape[cut] - 1);
    boxes.push_back(box);
  }
  return boxes;
}

/// The boxes of the program's output written over another value, which lies in one of several ways.
absl::StatusOr<Graph> Patched(Rng& rng, const Graph& program) {
  const Shape& shape = program.type(program.outputs()[0].value).shape;
  const std::vector<Box> boxes = RandomBoxes(rng, shape);
  std::vector<OutputBox> wanted;
  for (const Box& box : boxes) wanted.push_back({0, box});
  if (wanted.empty()) return program;
  MENDEL_ASSIGN_OR_RETURN(const Graph pieces, RestrictToBoxes(program, wanted));
  GraphBuilder builder("patched");
  std::vector<ValueId> inputs;
  for (int32_t id : program.inputs())
    inputs.push_back(builder.Input(InputName(program.node(id)), program.node(id).outputs[0]));
  const uint64_t kind = rng.Below(4);
  ValueId base;
  if (kind == 0) {
    base = builder.Input("base", {DType::kF32, shape});
  } else if (kind == 1) {
    MENDEL_ASSIGN_OR_RETURN(base,
                            builder.Add("Neg", {builder.Input("base", {DType::kF32, shape})}));
  } else if (kind == 2) {  // seen through views
    Shape turned = shape;
    std::swap(turned[0], turned[1]);
    Ints perm(shape.size());
    for (size_t d = 0; d < perm.size(); ++d) perm[d] = static_cast<int64_t>(d < 2 ? 1 - d : d);
    MENDEL_ASSIGN_OR_RETURN(base,
                            builder.Add("Relu", {builder.Input("base", {DType::kF32, turned})}));
    MENDEL_ASSIGN_OR_RETURN(base, builder.Add("Transpose", {base}, {{"perm", perm}}));
  } else {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> whole, Inline(program, inputs, builder));
    base = whole[0];
  }
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> values, Inline(pieces, inputs, builder));
  std::vector<ValueId> operands = {base};
  for (size_t k = 0; k < values.size(); ++k) {
    ValueId value = values[k];
    if (rng.Flip(0.2)) {  // what is patched, corrected
      Attributes cut{
          {"starts", boxes[k].begin}, {"ends", boxes[k].end}, {"steps", Ints(shape.size(), 1)}};
      MENDEL_ASSIGN_OR_RETURN(const ValueId part, builder.Add("Slice", {base}, cut));
      MENDEL_ASSIGN_OR_RETURN(value, builder.Add("Add", {part, value}));
    }
    operands.push_back(value);
  }
  MENDEL_ASSIGN_OR_RETURN(ValueId y, builder.Add("Patch", operands, {{"boxes", boxes}}));
  if (rng.Flip(0.3)) {
    MENDEL_ASSIGN_OR_RETURN(y, builder.Add("Relu", {y}));
  }
  builder.Output("y", y);
  if (rng.Flip(0.2)) builder.Output("base", base);
  if (rng.Flip(0.2)) builder.Output("piece", values[0]);
  return builder.Build();
}

TEST(CpuPatch, OfAViewOfAnOutputWritesElsewhere) {
  GraphBuilder builder;
  const ValueId x = *builder.Add("Relu", {builder.Input("x", {DType::kF32, {4, 6}})});
  const ValueId view = *builder.Add("Reshape", {x}, {{"shape", Ints{6, 4}}});
  const ValueId piece = builder.Input("piece", {DType::kF32, {2, 4}});
  builder.Output("x", x);
  builder.Output(
      "y", *builder.Add("Patch", {view, piece}, {{"boxes", std::vector<Box>{{{1, 0}, {3, 4}}}}}));
  const auto graph = builder.Build();
  ASSERT_TRUE(graph.ok()) << graph.status();
  Rng rng(1);
  ExpectMatches(*graph, RandomInputs(rng, *graph), {});
}

TEST(CpuPatch, RandomBoxesOfRandomConvolutions) {
  std::map<std::string, int> kernels;
  int strips = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    const auto graph = Patched(rng, Program(rng).Build());
    ASSERT_TRUE(graph.ok()) << "seed " << seed << ": " << graph.status();
    std::vector<Tensor> weights;
    PrintOptions brief;
    brief.tensors = &weights;
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << PrintGraph(*graph, brief));
    CompileOptions options;
    options.threads = seed % 3 == 0 ? 2 : 1;
    for (const std::string& kernel :
         ExpectMatches(*graph, RandomInputs(rng, *graph), options, 2e-5)) {
      strips += kernel.find("strips:") == 0 ? 1 : 0;
      if (kernel.find("strips:") == 0 || kernel.find("patch") == 0) ++kernels[kernel];
    }
    if (testing::Test::HasFailure()) return;
  }
  for (const auto& [name, count] : kernels) std::cout << count << " x " << name << "\n";
  EXPECT_GT(strips, 150);
}

/// A pointwise convolution of a normalized value, a row of it overwritten by another convolution of
/// that value's source.
Graph PatchedProduct(Rng& rng) {
  Emitter e;
  const auto weights = [&](const Shape& shape, const std::string& name) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = rng.Uniform(0.1, 1);
    return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), name);
  };
  const int64_t images = rng.Between(1, 3), in = rng.Between(1, 40), out = rng.Between(1, 40),
                size = rng.Between(3, 12);
  const auto conv = [&](ValueId x, int64_t kernel, const std::string& name) {
    const Attributes attrs{{"strides", Ints{1, 1}},
                           {"dilations", Ints{1, 1}},
                           {"pads", Ints(4, 0)},
                           {"group", int64_t{1}}};
    return e.Op("Conv", {x, weights({out, in, kernel, kernel}, name)}, attrs);
  };
  const ValueId x = e.Input("x", {DType::kF32, {images, in, size, size}});
  const std::vector<ValueId> operands = {x, weights({in}, "s"), weights({in}, "b"),
                                         weights({in}, "m"), weights({in}, "v")};
  ValueId normalized = e.Op("BatchNormalization", operands);
  if (rng.Flip()) normalized = e.Op("Relu", {normalized});
  const ValueId base = conv(normalized, 1, "one");
  const ValueId piece = conv(e.Cut(x, {{0, 0, 0, 0}, {images, in, 3, size}}), 3, "nine");
  const std::vector<Box> boxes = {{{0, 0, 0, 0}, {images, out, 1, size - 2}}};
  e.Output("y", e.Op("Patch", {base, piece}, {{"boxes", boxes}}));
  return *e.Finish();
}

TEST(CpuPatch, LeavesOtherProductsTheirSources) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Graph graph = PatchedProduct(rng);
    CompileOptions options;
    options.threads = static_cast<int>(rng.Between(1, 3));
    for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
      const std::vector<std::string> names =
          FindBackend("cpu")->Algorithms(graph, id, Numerics::kStrict);
      if (std::find(names.begin(), names.end(), "pointwise-own") != names.end())
        options.algorithms[id] = "pointwise-own";
    }
    if (options.algorithms.empty()) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
    std::map<std::string, int> kernels;
    for (const std::string& kernel : ExpectMatches(graph, RandomInputs(rng, graph), options))
      ++kernels[kernel.substr(0, 6)];
    EXPECT_EQ(kernels["pointw"], 1);
    EXPECT_EQ(kernels["strips"], 1);
    EXPECT_EQ(kernels["batch_"] + kernels["tile R"] + kernels["tile B"], 0)
        << testing::PrintToString(kernels);
  }
}

}  // namespace
}  // namespace mendel::cpu
