#include "mutator/index/sample_products.h"

#include <string>

#include "graph/emitter.h"
#include "mutator/sample.h"

namespace mendel {
namespace {

ValueId Conv(Emitter& e, Rng& rng, ValueId x, int64_t out, int64_t kernel, int64_t stride,
             int64_t group, const std::string& name) {
  std::vector<ValueId> inputs = {
      x, SampleWeight(e, rng, {out, e.shape(x)[1] / group, kernel, kernel}, "w" + name)};
  if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {out}, "b" + name));
  Attributes attrs = WindowAttributes(2, stride, 1, kernel / 2);
  attrs.Set("group", group);
  return e.Op("Conv", inputs, attrs);
}

ValueId Norm(Emitter& e, Rng& rng, ValueId x) {
  const Shape channels = {e.shape(x)[1]};
  std::vector<ValueId> inputs = {x};
  for (const char* name : {"scale", "shift", "mean"})
    inputs.push_back(SampleWeight(e, rng, channels, name));
  inputs.push_back(e.Constant(Tensor::Filled({DType::kF32, channels}, 4), "variance"));
  return e.Op("BatchNormalization", inputs);
}

absl::StatusOr<Graph> MakeBranches(Rng& rng) {
  Emitter e("sample");
  const int64_t stride = rng.Between(1, 2), group = rng.Between(1, 2), width = 8;
  const ValueId x = e.Op("Relu", {e.Input("x", {DType::kF32, {1, width, 7, 6}})});
  ValueId y = Conv(e, rng, x, width, 3, stride, group, "a");
  y = e.Add(y, Conv(e, rng, x, width, rng.Flip() ? 1 : 3, stride, rng.Flip() ? group : 1, "b"));
  if (rng.Flip()) y = e.Op("Sub", {y, Conv(e, rng, x, width, 5, stride, group, "c")});
  if (stride == 1 && rng.Flip()) y = e.Add(y, x);
  if (stride == 1 && rng.Flip()) y = e.Add(y, Norm(e, rng, x));
  e.Output("y", e.Op("Relu", {y}));
  return e.Finish();
}

absl::StatusOr<Graph> MakeLowRank(Rng& rng) {
  Emitter e("sample");
  const Shape shape = rng.Flip() ? Shape{2, 16, 24} : Shape{32, 24};
  const ValueId x = e.Input("x", {DType::kF32, shape});
  const int64_t rank = rng.Between(12, 20);
  ValueId y = e.MatMul(x, SampleWeight(e, rng, {24, 20}, "w"));
  if (rng.Flip()) y = e.Add(y, SampleWeight(e, rng, {20}, "bias"));
  ValueId low = e.MatMul(e.MatMul(x, SampleWeight(e, rng, {24, rank}, "a")),
                         SampleWeight(e, rng, {rank, 20}, "b"));
  if (rng.Flip()) low = e.Mul(low, e.Constant(Tensor::Scalar(DType::kF32, rng.Flip() ? 0.5 : 0.3)));
  e.Output("y", rng.Flip() ? e.Add(low, y) : e.Add(y, low));
  return e.Finish();
}

absl::StatusOr<Graph> MakeChain(Rng& rng) {
  Emitter e("sample");
  const int64_t a = rng.Between(1, 3), b = rng.Between(40, 50), c = rng.Between(40, 50);
  const ValueId x = e.Input("x", {DType::kF32, {a, b}});
  const ValueId v = e.Input("v", {DType::kF32, {b, c}}), w = e.Input("w", {DType::kF32, {c, b}});
  e.Output("y", e.MatMul(x, e.MatMul(v, w)));
  return e.Finish();
}

absl::StatusOr<Graph> MakePointwiseChain(Rng& rng) {
  Emitter e("sample");
  const ValueId x = e.Input("x", {DType::kF32, {1, 6, 9, 8}});
  const int64_t wide = 40;
  ValueId y = Conv(e, rng, x, wide, 1, 1, 1, "a");
  y = Conv(e, rng, y, 6, rng.Flip() ? 1 : 3, rng.Between(1, 2), 1, "b");
  e.Output("y", y);
  return e.Finish();
}

/// Convolutions without a function between them, of a narrow, a wide and a narrow picture.
absl::StatusOr<Graph> MakeLinearConvs(Rng& rng) {
  Emitter e("sample");
  const ValueId x = e.Input("x", {DType::kF32, {1, 3, 13, 12}});
  ValueId y = Conv(e, rng, x, 48, rng.Between(2, 3), rng.Between(1, 2), 1, "a");
  const int64_t kernel = rng.Between(2, 3);
  const ValueId w = SampleWeight(e, rng, {3, 48, kernel, kernel}, "wb");
  e.Output("y", e.Op("Conv", {y, w}, WindowAttributes(2, rng.Between(1, 2), rng.Between(1, 2), 0)));
  return e.Finish();
}

absl::StatusOr<Graph> MakeDistances(Rng& rng) {
  Emitter e("sample");
  const int64_t rows = rng.Between(20, 30), entries = rng.Between(20, 30), width = 16;
  ValueId x = e.Input("x", {DType::kF32, {rows, 1, width}});
  if (rng.Flip()) x = e.MatMul(x, SampleWeight(e, rng, {width, width}, "w"));
  const ValueId c = rng.Flip() ? SampleWeight(e, rng, {1, entries, width}, "c")
                               : e.Input("c", {DType::kF32, {entries, width}});
  const ValueId d = rng.Flip() ? e.Op("Sub", {x, c}) : e.Op("Sub", {c, x});
  const ValueId square = e.Mul(d, d);
  e.Output("y", e.Op(rng.Flip() ? "ReduceSum" : "ReduceMean", {square},
                     {{"axes", Ints{2}}, {"keepdims", rng.Between(0, 1)}}));
  return e.Finish();
}

absl::StatusOr<Graph> MakeSharedWeights(Rng& rng) {
  Emitter e("sample");
  const TensorType type{DType::kF32, {16, 24}};
  const ValueId x = e.Input("x", type), y = e.Input("y", type);
  const ValueId w = SampleWeight(e, rng, {24, 20}, "w");
  const ValueId left = e.MatMul(x, w), right = e.MatMul(y, w);
  e.Output("z", rng.Flip() ? e.Add(left, right) : e.Op("Sub", {e.Add(left, right), left}));
  return e.Finish();
}

/// A layer, then the mean of every few rows.
absl::StatusOr<Graph> MakeGroupedRows(Rng& rng) {
  Emitter e("sample");
  const int64_t batch = rng.Between(1, 2), groups = rng.Between(2, 4), each = rng.Between(2, 5);
  const int64_t width = rng.Between(16, 24), out = rng.Between(24, 40);
  const ValueId x = e.Input("x", {DType::kF32, {batch, groups * each, width}});
  const ValueId y = e.MatMul(x, SampleWeight(e, rng, {width, out}, "w"));
  const ValueId rows = e.Reshape(y, {batch, groups, each, out});
  e.Output("y", e.Op(rng.Flip() ? "ReduceSum" : "ReduceMean", {rows},
                     {{"axes", Ints{2}}, {"keepdims", rng.Between(0, 1)}}));
  return e.Finish();
}

absl::StatusOr<Graph> MakePooled(Rng& rng) {
  Emitter e("sample");
  const ValueId x = e.Input("x", {DType::kF32, {1, 8, 12, 12}});
  const ValueId y = Conv(e, rng, x, 16, 1, 1, 1, "a");
  Attributes attrs = WindowAttributes(2, 2, 1, 0);
  attrs.Set("kernel_shape", Ints{2, 3});
  e.Output("y", rng.Flip() ? e.Op("AveragePool", {y}, attrs)
                           : e.Op("ReduceMean", {y}, {{"axes", Ints{2, 3}}}));
  return e.Finish();
}

absl::StatusOr<Graph> MakeLinearAttention(Rng& rng) {
  Emitter e("sample");
  const int64_t rows = rng.Between(30, 40), width = rng.Between(4, 6);
  const auto heads = [&](const char* name) {
    const ValueId x = e.Input(name, {DType::kF32, {1, rows, 2, width}});
    return e.Transpose(e.Op("Relu", {x}), {0, 2, 1, 3});
  };
  const ValueId q = heads("q"), k = heads("k"), v = heads("v");
  ValueId y = e.MatMul(e.MatMul(q, e.Transpose(k, {0, 1, 3, 2})), v);
  y = e.Reshape(e.Transpose(y, {0, 2, 1, 3}), {1, rows, 2 * width});
  if (rng.Flip()) y = e.MatMul(y, SampleWeight(e, rng, {2 * width, 2 * width}, "o"));
  e.Output("y", y);
  return e.Finish();
}

/// A layer with a bias, summed over its rows.
absl::StatusOr<Graph> MakeSummedRows(Rng& rng) {
  Emitter e("sample");
  const int64_t rows = rng.Between(20, 30), inner = rng.Between(8, 12), outer = rng.Between(8, 12);
  const ValueId x =
      e.Add(e.Input("x", {DType::kF32, {rows, inner}}), SampleWeight(e, rng, {inner}, "shift"));
  ValueId y = e.MatMul(x, SampleWeight(e, rng, {inner, outer}, "w"));
  y = e.Mul(e.Add(y, SampleWeight(e, rng, {outer}, "b")), SampleWeight(e, rng, {outer}, "scale"));
  e.Output("y", e.Op("ReduceSum", {y}, {{"axes", Ints{0}}, {"keepdims", int64_t{0}}}));
  return e.Finish();
}

/// One position of the factor, repeated along the sum, beside the factor.
absl::StatusOr<Graph> MakeRepeatedPart(Rng& rng) {
  Emitter e("sample");
  const int64_t inner = rng.Between(2, 4);
  const ValueId x = e.Input("x", {DType::kF32, {rng.Between(20, 30), inner}});
  const int64_t at = rng.Between(0, inner - 1);
  const ValueId part = e.Slice(x, 1, at, at + 1);
  const ValueId sum = rng.Flip() ? e.Add(part, x) : e.Op("Sub", {x, part});
  e.Output("y", e.MatMul(sum, SampleWeight(e, rng, {inner, rng.Between(20, 30)}, "w")));
  return e.Finish();
}

/// Linear attention whose scores are summed, too.
absl::StatusOr<Graph> MakeSharedScores(Rng& rng) {
  Emitter e("sample");
  const int64_t rows = rng.Between(150, 200), width = rng.Between(4, 8);
  const auto input = [&](const char* name) {
    return e.Input(name, {DType::kF32, {1, rows, width}});
  };
  const ValueId q = input("q"), k = input("k"), v = input("v");
  const ValueId scores = e.MatMul(q, e.Transpose(k, {0, 2, 1}));
  e.Output("z", e.Op("ReduceSum", {scores}, {{"axes", Ints{2}}, {"keepdims", int64_t{1}}}));
  e.Output("y", e.MatMul(scores, v));
  return e.Finish();
}

/// Layers of which another output reads the first.
absl::StatusOr<Graph> MakeSharedLayer(Rng& rng) {
  Emitter e("sample");
  if (rng.Flip()) {
    const ValueId x = e.Input("x", {DType::kF32, {1, 4, 9, 8}});
    const ValueId y = Conv(e, rng, x, 40, 1, 1, 1, "a");
    e.Output("z", e.Op("Relu", {y}));
    e.Output("y", Conv(e, rng, y, 4, rng.Flip() ? 1 : 3, rng.Between(1, 2), 1, "b"));
    return e.Finish();
  }
  const int64_t width = rng.Between(20, 24), rank = rng.Between(12, 20);
  const ValueId x = e.Input("x", {DType::kF32, {32, width}});
  ValueId low = e.MatMul(x, SampleWeight(e, rng, {width, rank}, "a"));
  if (rng.Flip()) low = e.Add(low, SampleWeight(e, rng, {rank}, "bias"));
  e.Output("z", rng.Flip() ? low : e.Op("Relu", {low}));
  e.Output("y", e.Add(e.MatMul(x, SampleWeight(e, rng, {width, 20}, "w")),
                      e.MatMul(low, SampleWeight(e, rng, {rank, 20}, "b"))));
  return e.Finish();
}

}  // namespace

const std::vector<ProductSample>& ProductSamples() {
  static const auto* samples =
      new std::vector<ProductSample>{{"branches", &MakeBranches},
                                     {"low_rank", &MakeLowRank},
                                     {"chain", &MakeChain},
                                     {"pointwise_chain", &MakePointwiseChain},
                                     {"linear_convs", &MakeLinearConvs},
                                     {"distances", &MakeDistances},
                                     {"shared_weights", &MakeSharedWeights},
                                     {"summed_rows", &MakeSummedRows},
                                     {"grouped_rows", &MakeGroupedRows},
                                     {"pooled", &MakePooled},
                                     {"repeated_part", &MakeRepeatedPart},
                                     {"linear_attention", &MakeLinearAttention},
                                     {"shared_scores", &MakeSharedScores},
                                     {"shared_layer", &MakeSharedLayer}};
  return *samples;
}

}  // namespace mendel
