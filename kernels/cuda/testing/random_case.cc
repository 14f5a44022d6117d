// Random corrected mutants (correction_case.h).

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "graph/emitter.h"
#include "graph/restrict.h"
#include "graph/rewrite.h"
#include "graph/window.h"
#include "kernels/cuda/testing/correction_case.h"

namespace mendel::cuda {
namespace {

constexpr int64_t kMaxProducts = 200000;  // of one case, so that hundreds take seconds

ValueId SmallConstant(Emitter& e, Rng& rng, DType dtype, const Shape& shape,
                      const std::string& name) {
  std::vector<double> values;
  for (int64_t i = 0; i < NumElements(shape); ++i)
    values.push_back(static_cast<double>(rng.Between(-2, 2)));
  return e.Constant(Tensor::FromDoubles({dtype, shape}, values), name);
}

/// One convolution that keeps about the extents of `x`, by chance with groups, strides, dilations
/// and lopsided padding.
ValueId RandomConv(Emitter& e, Rng& rng, ValueId x, DType dtype, const std::string& name) {
  const Shape shape = e.shape(x);
  const size_t spatial = shape.size() - 2;
  std::vector<int64_t> divisors;
  for (int64_t g = 1; g <= shape[1]; ++g) {
    if (shape[1] % g == 0) divisors.push_back(g);
  }
  const int64_t group = rng.Flip(0.4) ? divisors[rng.Below(divisors.size())] : 1;
  Shape w = {group * rng.Between(1, group > 2 ? 3 : 12), shape[1] / group};
  Ints strides, dilations, pads(2 * spatial);
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t dilation = rng.Flip(0.3) ? rng.Between(2, 3) : 1;
    int64_t kernel = rng.Between(1, spatial == 3 ? 3 : 5);
    pads[d] = rng.Between(0, kernel);
    pads[spatial + d] = rng.Between(0, kernel);
    while (dilation * (kernel - 1) + 1 > shape[d + 2] + pads[d] + pads[spatial + d]) --kernel;
    strides.push_back(rng.Flip(0.25) ? rng.Between(2, 3) : 1);
    dilations.push_back(dilation);
    w.push_back(kernel);
  }
  std::vector<ValueId> operands = {x, SmallConstant(e, rng, dtype, w, name + "w")};
  if (rng.Flip(0.6)) operands.push_back(SmallConstant(e, rng, dtype, {w[0]}, name + "b"));
  return e.Op("Conv", operands,
              {{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", group}},
              name);
}

ValueId RandomActivation(Emitter& e, Rng& rng, ValueId x) {
  switch (rng.Below(5)) {
    case 0:
      return e.Op("LeakyRelu", {x}, {{"alpha", 0.25}});
    case 1:
      return e.Op("Clip", {x}, {{"min", -3.0}, {"max", 6.0}});
    case 2:
      return e.Op("Clip", {x}, {{"min", 0.0}});
    default:
      return e.Op("Relu", {x});
  }
}

/// Convolutions, what is added to the last one's sum, and activations.
Graph RandomOriginal(Rng& rng, DType dtype, int length) {
  Emitter e("original");
  const size_t spatial = static_cast<size_t>(rng.Between(1, 3));
  Shape x = {rng.Flip(0.3) ? rng.Between(2, 16) : 1, rng.Between(1, 12)};
  if (rng.Flip(0.4)) x[1] = 4 * rng.Between(1, 6);
  for (size_t d = 0; d < spatial; ++d)
    x.push_back(rng.Between(3, spatial == 1 ? 40 : (spatial == 2 ? 14 : 7)));
  ValueId value = e.Input("x", {dtype, x});
  for (int k = 0; k < length; ++k) {
    value = RandomConv(e, rng, value, dtype, Cat("conv", k));
    if (k + 1 < length && rng.Flip()) value = RandomActivation(e, rng, value);
  }
  const bool first = rng.Flip();
  if (first && rng.Flip(0.7)) value = RandomActivation(e, rng, value);
  if (rng.Flip(0.4)) value = e.Add(value, e.Input("residual", e.type(value)));
  if (!first && rng.Flip(0.7)) value = RandomActivation(e, rng, value);
  e.Output("y", value);
  auto graph = e.Finish();
  MENDEL_CHECK(graph.ok());
  return *std::move(graph);
}

/// Disjoint boxes: rows as of seams, blocks, sometimes part of the channels.
std::vector<Box> RandomBoxes(Rng& rng, const Shape& shape, int64_t per_group) {
  std::vector<Box> boxes;
  for (int64_t k = rng.Between(1, 4); k > 0; --k) {
    Box box = Box::Whole(shape);
    const bool seam = rng.Flip();
    const size_t along = 2 + rng.Below(shape.size() - 2);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (d == 1 || (seam && d != along) || (d == 0 && rng.Flip(0.7))) continue;
      box.begin[d] = rng.Between(0, shape[d] - 1);
      box.end[d] =
          rng.Between(box.begin[d] + 1, std::min(shape[d], box.begin[d] + (seam ? 2 : shape[d])));
    }
    if (rng.Flip(0.3)) {  // whole groups, or part of one
      const int64_t group = rng.Between(0, shape[1] / per_group - 1);
      box.begin[1] = group * per_group + (rng.Flip() ? rng.Between(0, per_group - 1) : 0);
      box.end[1] = rng.Between(box.begin[1] + 1, (group + 1) * per_group);
    }
    if (std::none_of(boxes.begin(), boxes.end(),
                     [&](const Box& other) { return Intersect(box, other).has_value(); }))
      boxes.push_back(box);
  }
  return boxes;
}

/// Patch(base, pieces of `original`){boxes}; where `added`, base's elements are added to the
/// pieces.
Graph Corrected(const Graph& original, const std::vector<Box>& boxes, bool added) {
  Emitter e("corrected");
  std::vector<OutputBox> wanted;
  for (const Box& box : boxes) wanted.push_back({0, box});
  auto pieces = RestrictToBoxes(original, wanted);
  MENDEL_CHECK(pieces.ok());
  GraphBuilder builder("corrected");
  std::vector<ValueId> inputs;
  for (int32_t id : original.inputs())
    inputs.push_back(builder.Input(InputName(original.node(id)), original.node(id).outputs[0]));
  const ValueId base = builder.Input("mutant", original.type(original.outputs()[0].value));
  auto values = Inline(*pieces, inputs, builder);
  MENDEL_CHECK(values.ok());
  std::vector<ValueId> operands = {base};
  for (size_t k = 0; k < boxes.size(); ++k) {
    ValueId piece = (*values)[k];
    if (added) {
      const Ints ones(boxes[k].begin.size(), 1);
      const auto before = builder.Add(
          "Slice", {base}, {{"starts", boxes[k].begin}, {"ends", boxes[k].end}, {"steps", ones}});
      MENDEL_CHECK(before.ok());
      const auto sum = builder.Add("Add", {*before, piece});
      MENDEL_CHECK(sum.ok());
      piece = *sum;
    }
    operands.push_back(piece);
  }
  const auto patch = builder.Add("Patch", std::move(operands), {{"boxes", boxes}}, "corrected");
  MENDEL_CHECK(patch.ok());
  builder.Output("y", *patch);
  auto graph = builder.Build();
  MENDEL_CHECK(graph.ok());
  return *std::move(graph);
}

int64_t PerGroup(const Graph& original) {
  int64_t per_group = 1;
  for (const Node& node : original.nodes()) {
    if (node.op->name == "Conv") per_group = node.outputs[0].shape[1] / node.attrs.Int("group");
  }
  return per_group;
}

}  // namespace

Graph CorrectedConv(const ConvShape& shape, const std::vector<Box>& boxes) {
  Emitter e("original");
  Rng rng(7);
  const ValueId x = e.Input("x", {shape.dtype, shape.x});
  const ValueId w = SmallConstant(e, rng, shape.dtype, shape.w, "w");
  const ValueId b = SmallConstant(e, rng, shape.dtype, {shape.w[0]}, "b");
  const ValueId y = e.Op("Conv", {x, w, b},
                         {{"strides", shape.strides},
                          {"dilations", shape.dilations},
                          {"pads", shape.pads},
                          {"group", shape.group}},
                         "conv");
  e.Output("y", e.Op("Relu", {e.Add(y, e.Input("residual", e.type(y)))}));
  const auto original = e.Finish();
  MENDEL_CHECK(original.ok());
  return Corrected(*original, boxes, false);
}

CorrectionCase RandomCase(uint64_t seed) {
  for (uint64_t attempt = 0;; ++attempt) {
    Rng rng(seed + (attempt << 32));
    const int length = rng.Flip(0.2) ? static_cast<int>(rng.Between(2, 4)) : 1;
    const DType types[] = {DType::kF32, DType::kF32, DType::kF16, DType::kBF16};
    const DType dtype = length > 1 ? DType::kF32 : types[rng.Below(4)];
    const Graph original = RandomOriginal(rng, dtype, length);
    const Shape shape = original.type(original.outputs()[0].value).shape;
    if (NumElements(shape) == 0 || RunTimeFlops(original) > 2 * kMaxProducts) continue;
    const std::vector<Box> boxes = RandomBoxes(rng, shape, PerGroup(original));
    const Graph graph = Corrected(original, boxes, rng.Flip(0.2));
    const Tile tile = Tiles()[rng.Below(Tiles().size())];
    const Layout layout = rng.Flip() ? Layout::kNchw : Layout::kNhwc;
    auto one = MakeCase(graph, layout, Cat("s", seed, "_"), rng.Flip(0.7) ? &tile : nullptr);
    // A box across groups is recomputed whole and cut: no form of a correction.
    if (!one.ok() && absl::IsUnimplemented(one.status())) continue;
    MENDEL_CHECK(one.ok());
    one->seed = seed;
    one->exact = length == 1;
    const Correction& last = one->patch_kernels.kernels.back().correction;
    one->description = Cat("seed ", seed, ": ", length, " conv, ", DTypeName(dtype), " ",
                           LayoutName(layout), " output ", ShapeString(shape), " kernel ",
                           ShapeString(last.kernel), " groups ", shape[1] / PerGroup(original),
                           ", ", boxes.size(), " boxes, ", EpilogueText(last.epilogue));
    return *std::move(one);
  }
}

}  // namespace mendel::cuda
