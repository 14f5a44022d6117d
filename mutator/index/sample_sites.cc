#include "mutator/index/sample_sites.h"

#include <cstring>

#include "base/check.h"
#include "graph/emitter.h"

namespace mendel {
namespace {

Tensor RandomTensor(Rng& rng, Shape shape) {
  const TensorType type{DType::kF32, std::move(shape)};
  std::vector<double> values(static_cast<size_t>(NumElements(type)));
  for (double& value : values) value = static_cast<double>(rng.Between(-3, 3));
  return Tensor::FromDoubles(type, values);
}

struct ConvCase {
  int64_t kernel = 3, stride = 1, dilation = 1, pad = 1, group = 1;
  int64_t channels = 0;  ///< 0: two or three
  int64_t space = 0;     ///< more than the kernel needs; 0: up to 4
};

absl::StatusOr<Graph> MakeConv(Rng& rng, const ConvCase& c) {
  Emitter e("conv");
  const int64_t least = c.dilation * (c.kernel - 1) + 1;
  const int64_t h = least + (c.space > 0 ? c.space : rng.Between(0, 4)),
                w = least + (c.space > 0 ? c.space : rng.Between(0, 4));
  const Shape x = {rng.Between(1, 2), c.channels > 0 ? c.channels : c.group * rng.Between(2, 3), h,
                   w};
  const int64_t out = c.channels > 0 ? c.channels : c.group * rng.Between(1, 3);
  std::vector<ValueId> operands = {
      e.Input("x", {DType::kF32, x}),
      e.Constant(RandomTensor(rng, {out, x[1] / c.group, c.kernel, c.kernel}), "w")};
  if (rng.Flip()) operands.push_back(e.Constant(RandomTensor(rng, {out}), "b"));
  e.Output("y", e.Op("Conv", operands,
                     {{"strides", Ints{c.stride, c.stride}},
                      {"dilations", Ints{c.dilation, c.dilation}},
                      {"pads", Ints{c.pad, c.pad, c.pad, c.pad}},
                      {"group", c.group}}));
  return e.Finish();
}

absl::StatusOr<Graph> MakeConvTranspose(Rng& rng, const Shape& x, int64_t out) {
  Emitter e("conv_transpose");
  const int64_t stride = rng.Between(2, 3);
  const int64_t kernel = rng.Between(stride, stride + 2);
  const int64_t pad = rng.Between(0, 1);
  std::vector<ValueId> operands = {e.Input("x", {DType::kF32, x}),
                                   e.Constant(RandomTensor(rng, {x[1], out, kernel, kernel}), "w")};
  if (rng.Flip()) operands.push_back(e.Constant(RandomTensor(rng, {out}), "b"));
  e.Output("y", e.Op("ConvTranspose", operands,
                     {{"strides", Ints{stride, stride}},
                      {"dilations", Ints{1, 1}},
                      {"pads", Ints{pad, pad, pad, pad}},
                      {"output_padding", Ints{0, 0}},
                      {"group", int64_t{1}}}));
  return e.Finish();
}

/// y[b, i, w] = sum over k of a[b, i, k] * c[b, i + w - reach, k], band position by band position.
absl::StatusOr<Graph> MakeBanded(Rng& rng) {
  Emitter e("banded");
  const int64_t reach = rng.Between(1, 2), batch = rng.Between(1, 2), rows = rng.Between(8, 20),
                depth = rng.Between(2, 4);
  const ValueId a = e.Input("a", {DType::kF32, {batch, rows, depth}});
  const ValueId padded =
      e.PadZero(e.Input("c", {DType::kF32, {batch, rows, depth}}), 1, reach, reach);
  std::vector<ValueId> columns;
  for (int64_t w = 0; w <= 2 * reach; ++w) {
    const ValueId product = e.Mul(a, e.Slice(padded, 1, w, w + rows));
    columns.push_back(e.Op("ReduceSum", {product}, {{"axes", Ints{2}}, {"keepdims", int64_t{1}}}));
  }
  e.Output("y", e.Concat(columns, 2));
  return e.Finish();
}

/// y[b, i, k] = sum over w of a[b, i, w] * c[b, i + w - reach, k].
absl::StatusOr<Graph> MakeBandedSum(Rng& rng) {
  Emitter e("banded_sum");
  const int64_t reach = rng.Between(1, 2), batch = rng.Between(1, 2), rows = rng.Between(8, 20),
                depth = rng.Between(2, 4);
  const ValueId a = e.Input("a", {DType::kF32, {batch, rows, 2 * reach + 1}});
  const ValueId padded =
      e.PadZero(e.Input("c", {DType::kF32, {batch, rows, depth}}), 1, reach, reach);
  ValueId sum;
  for (int64_t w = 0; w <= 2 * reach; ++w) {
    const ValueId product = e.Mul(e.Slice(a, 2, w, w + 1), e.Slice(padded, 1, w, w + rows));
    sum = w == 0 ? product : e.Add(sum, product);
  }
  e.Output("y", sum);
  return e.Finish();
}

absl::StatusOr<Graph> MakeMatMul(Rng& rng) {
  Emitter e("matmul");
  const int64_t k = rng.Between(2, 4);
  const ValueId a = e.Input("a", {DType::kF32, {2, rng.Between(1, 4), k}});
  e.Output("y",
           e.MatMul(a, e.Transpose(e.Input("b", {DType::kF32, {rng.Between(1, 4), k}}), {1, 0})));
  return e.Finish();
}

absl::StatusOr<Graph> MakeEinsum(Rng& rng) {
  Emitter e("einsum");
  const int64_t k = rng.Between(2, 4), b = rng.Between(1, 3);
  const ValueId a = e.Input("a", {DType::kF32, {b, rng.Between(1, 4), k}});
  const ValueId c = e.Input("c", {DType::kF32, {rng.Between(1, 4), b, k}});
  e.Output("y", e.Op("Einsum", {a, c}, {{"equation", std::string("bik,jbk->bji")}}));
  return e.Finish();
}

/// Pieces of images as a batch, by views around a convolution; its channels are split and its rows
/// merged afterwards.
absl::StatusOr<Graph> MakeViewed(Rng& rng) {
  Emitter e("viewed");
  const int64_t c = rng.Between(1, 2), h = rng.Between(2, 3);
  const ValueId x = e.Input("x", {DType::kF32, {2, c, 2, h, 5}});
  const ValueId image = e.Reshape(e.Transpose(x, {0, 2, 1, 3, 4}), {4, c, h, 5});
  const ValueId y = e.Op("Conv", {image, e.Constant(RandomTensor(rng, {4, c, 1, 3}), "w")},
                         {{"strides", Ints{1, 1}},
                          {"dilations", Ints{1, 1}},
                          {"pads", Ints{0, 1, 0, 1}},
                          {"group", int64_t{1}}});
  e.Output("y", e.Transpose(e.Reshape(y, {4, 2, 2, h * 5}), {0, 2, 1, 3}));
  return e.Finish();
}

}  // namespace

const std::vector<SiteSample>& SiteSamples() {
  static const auto* samples = new std::vector<SiteSample>{
      {"conv", [](Rng& rng) { return MakeConv(rng, {}); }},
      {"conv5x5", [](Rng& rng) { return MakeConv(rng, {.kernel = 5, .pad = rng.Between(0, 2)}); }},
      {"strided", [](Rng& rng) { return MakeConv(rng, {.stride = 2, .pad = rng.Between(0, 1)}); }},
      {"conv_transpose",
       [](Rng& rng) {
         const Shape x = {rng.Between(1, 2), rng.Between(2, 3), rng.Between(2, 4),
                          rng.Between(2, 4)};
         return MakeConvTranspose(rng, x, rng.Between(1, 3));
       }},
      {"dilated",
       [](Rng& rng) {
         const int64_t d = rng.Between(2, 3);
         return MakeConv(rng,
                         {.dilation = d, .pad = rng.Between(0, d), .space = rng.Between(4, 6)});
       }},
      {"grouped", [](Rng& rng) { return MakeConv(rng, {.group = 2}); }},
      {"banded", &MakeBanded},
      {"banded_sum", &MakeBandedSum},
      {"matmul", &MakeMatMul},
      {"einsum", &MakeEinsum},
      {"viewed", &MakeViewed}};
  return *samples;
}

absl::StatusOr<Graph> MakeWideSite(Rng& rng) {
  switch (rng.Below(3)) {
    case 0:
      return MakeConv(rng, {.dilation = 2, .pad = rng.Between(0, 2), .channels = 24, .space = 16});
    case 1:
      return MakeConv(rng, {.kernel = 5, .pad = 2, .channels = 64, .space = 9});
    default:
      return MakeConvTranspose(rng, {1, 32, 10, 11}, 24);
  }
}

const SiteSample& FindSiteSample(const char* name) {
  for (const SiteSample& sample : SiteSamples()) {
    if (std::strcmp(sample.name, name) == 0) return sample;
  }
  MENDEL_CHECK(false);
  return SiteSamples()[0];
}

}  // namespace mendel
