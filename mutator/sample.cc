#include "mutator/sample.h"

#include <vector>

#include "base/status.h"

namespace mendel {
namespace {

/// Extent-keeping average (padding counted) or max pool of 3.
ValueId Pool(Emitter& e, Rng& rng, ValueId x, size_t rank) {
  Attributes attrs = WindowAttributes(rank, 1, 1, 1);
  attrs.Set("kernel_shape", Ints(rank, 3));
  if (rng.Flip()) return e.Op("MaxPool", {x}, attrs);
  attrs.Set("count_include_pad", rng.Between(0, 1));
  return e.Op("AveragePool", {x}, attrs);
}

}  // namespace

ValueId SampleWeight(Emitter& e, Rng& rng, const Shape& shape, const std::string& name) {
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (double& value : values) value = rng.Normal();
  return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), name);
}

Attributes WindowAttributes(size_t rank, int64_t stride, int64_t dilation, int64_t pad) {
  return {{"strides", Ints(rank, stride)},
          {"dilations", Ints(rank, dilation)},
          {"pads", Ints(2 * rank, pad)}};
}

absl::StatusOr<Graph> MakeRegionSample(Rng& rng, const RegionSample& sample) {
  Emitter e("sample");
  const size_t rank = sample.kernel.size();
  const int64_t channels = sample.input[1];
  Shape weight = {channels, channels};
  weight.insert(weight.end(), sample.kernel.begin(), sample.kernel.end());
  Ints pads(2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t reach = sample.padded ? sample.dilation * (sample.kernel[d] - 1) : 0;
    pads[d] = reach / 2;
    pads[rank + d] = reach - reach / 2;
  }
  ValueId x = e.Input("x", {DType::kF32, sample.input});
  ValueId kept;
  const auto fits = [&](ValueId value) {
    for (size_t d = 0; d < rank; ++d) {
      if (e.shape(value)[d + 2] + pads[d] + pads[rank + d] <=
          sample.dilation * (sample.kernel[d] - 1))
        return false;
    }
    return true;
  };
  for (int k = 0; k < sample.links && (k == 0 || fits(x)); ++k) {
    std::vector<ValueId> inputs = {x, SampleWeight(e, rng, weight, Cat("w", k))};
    if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {channels}, Cat("b", k)));
    Attributes attrs = WindowAttributes(rank, k == 0 ? sample.first_stride : 1, sample.dilation, 0);
    attrs.Set("pads", pads);
    x = e.Op("Conv", inputs, attrs);
    if (rng.Flip()) x = e.Op("Relu", {x});
    if (k > 0) continue;
    if (sample.pool && rng.Between(0, 2) == 0) x = Pool(e, rng, x, rank);
    kept = sample.separate_inputs ? e.Input("residual", e.type(x)) : x;
  }
  if (sample.residual && rng.Flip() && e.shape(kept) == e.shape(x))
    x = e.Op("Relu", {e.Add(x, kept)});
  if (sample.outputs && kept != x && !sample.separate_inputs && rng.Between(0, 2) == 0)
    e.Output("first", kept);
  e.Output("y", x);
  return e.Finish();
}

}  // namespace mendel
