// A kernel that is exactly a product, as two convolutions.
//
//   before  Conv(x, w[O, C/g, K..], b) where w[o, c, .., k_a, ..] = u[o, c, ..] * v[o, k_a] for some dimension a
//   after   Conv(Conv(x, u){K_a = 1}, v[O, 1, .., K_a, ..]{group O}, b)
//   exact: only for literal weights (the judge knows them) whose stored numbers are such products without rounding: blurs,
//   Sobel and box filters, (2+1)-D factorised kernels. loses when K is small: the second pass reads everything again.

#include <algorithm>
#include <cmath>
#include <optional>

#include "mutator/conv_chain.h"
#include "mutator/low_rank.h"
#include "mutator/parallel.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::separable_kernel {
namespace {

struct Factors {
  std::vector<double> u, v;  ///< shapes: w with K_a = 1; [O, K_a]
};

bool IsF32(double value) { return static_cast<double>(static_cast<float>(value)) == value; }

/// Factors of one output channel's rows x K_a matrix (row r, tap k at data[offset(r) + k * stride]).
bool FactorChannel(const std::vector<double>& w, const std::vector<size_t>& rows, size_t stride, size_t taps, double* u,
                   double* v) {
  size_t pivot = rows.size();
  for (size_t r = 0; r < rows.size() && pivot == rows.size(); ++r) {
    for (size_t k = 0; k < taps; ++k) {
      if (w[rows[r] + k * stride] != 0) pivot = r;
    }
  }
  std::fill(u, u + rows.size(), 0.0);
  std::fill(v, v + taps, 0.0);
  if (pivot == rows.size()) return true;  // all zero
  for (size_t p = 0; p < taps; ++p) {     // the tap that becomes 1 in v
    const double unit = w[rows[pivot] + p * stride];
    if (unit == 0) continue;
    bool exact = true;
    for (size_t k = 0; k < taps; ++k) {
      v[k] = w[rows[pivot] + k * stride] / unit;
      exact = exact && IsF32(v[k]);
    }
    for (size_t r = 0; r < rows.size(); ++r) {
      u[r] = w[rows[r] + p * stride];
      for (size_t k = 0; k < taps; ++k) exact = exact && u[r] * v[k] == w[rows[r] + k * stride];  // 48 bits: not rounded
    }
    if (exact) return true;
  }
  return false;
}

std::optional<Factors> FactorsAlong(const Tensor& tensor, size_t a) {
  const Shape& shape = tensor.shape();
  const std::vector<double> w = tensor.ToDoubles();
  const Shape strides = RowMajorStrides(shape);
  const size_t taps = static_cast<size_t>(shape[a + 2]), stride = static_cast<size_t>(strides[a + 2]);
  const size_t channels = static_cast<size_t>(shape[0]), volume = w.size() / std::max<size_t>(1, channels);
  Factors factors{std::vector<double>(w.size() / taps), std::vector<double>(channels * taps)};
  for (size_t o = 0; o < channels; ++o) {
    std::vector<size_t> rows;
    for (size_t i = 0; i < volume; ++i) {
      if (i / stride % taps == 0) rows.push_back(o * volume + i);
    }
    if (!FactorChannel(w, rows, stride, taps, &factors.u[o * rows.size()], &factors.v[o * taps])) return std::nullopt;
  }
  return factors;
}

const Tensor* LiteralWeight(const Graph& graph, int32_t id) {
  const Node& conv = graph.node(id);
  return conv.op->name != "Conv" || IsWeight(graph, conv.inputs[0]) ? nullptr : StoredKernelOf(graph, conv.inputs[1]).values;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const Tensor* w = LiteralWeight(graph, node);
  if (w == nullptr || w->size() == 0) return {};
  std::vector<Match> matches;
  const size_t rank = w->shape().size() - 2;
  for (size_t a = 0; a < rank; ++a) {
    const bool others = w->size() / (w->shape()[0] * w->shape()[1]) > w->shape()[a + 2];
    if (!others || w->shape()[a + 2] < 2 || !FactorsAlong(*w, a).has_value()) continue;
    matches.push_back({{node}, {{"dim", static_cast<int64_t>(a + 2)}}});
    if (rank == 2) break;  // either order
  }
  return matches;
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match) {
  const int32_t id = subprogram.outputs()[0].value.node;
  const Tensor* w = LiteralWeight(subprogram, id);
  const size_t dim = static_cast<size_t>(match.choices.at("dim")), a = dim - 2;
  const std::optional<Factors> factors = w == nullptr ? std::nullopt : FactorsAlong(*w, a);
  if (!factors.has_value()) return absl::FailedPreconditionError("the kernel is no product");
  const Node& conv = subprogram.node(id);
  const size_t rank = w->shape().size() - 2;
  Shape first = w->shape(), second(rank + 2, 1);
  first[dim] = 1;
  second[0] = first[0];
  second[dim] = w->shape()[dim];
  Attributes around = conv.attrs, along = conv.attrs;
  for (const char* name : {"strides", "dilations", "pads"}) {
    Ints rest = conv.attrs.IntList(name);
    const int64_t neutral = std::string_view(name) == "pads" ? 0 : 1;
    Ints own(rest.size(), neutral);
    for (size_t d = a; d < rest.size(); d += rank) std::swap(rest[d], own[d]);
    around.Set(name, rest);
    along.Set(name, own);
  }
  along.Set("group", first[0]);
  Emitter e;
  const ValueId u = e.Constant(Tensor::FromDoubles({DType::kF32, first}, factors->u));
  ValueId v = e.Constant(Tensor::FromDoubles({DType::kF32, second}, factors->v));
  const std::optional<ValueId> scale = StoredKernelOf(subprogram, conv.inputs[1]).scale;
  if (scale.has_value()) v = e.Mul(v, e.CopyConstantExpression(subprogram, *scale));
  std::vector<ValueId> inputs = {e.Op("Conv", {e.InputsOf(subprogram)[0], u}, around, conv.name), v};
  if (conv.inputs.size() > 2) inputs.push_back(e.CopyConstantExpression(subprogram, conv.inputs[2]));
  e.Output("out0", e.Op("Conv", inputs, along, conv.name));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const size_t rank = static_cast<size_t>(rng.Between(2, 3));
  const size_t a = static_cast<size_t>(rng.Between(0, static_cast<int64_t>(rank) - 1));
  const int64_t group = rng.Between(1, 2);
  Shape input = {1, 2}, weight = {4, 2 / group};
  for (size_t d = 0; d < rank; ++d) {
    input.push_back(rng.Between(5, 6));
    weight.push_back(rng.Between(2, 3));
  }
  const int64_t taps = weight[a + 2], stride = RowMajorStrides(weight)[a + 2];
  std::vector<double> u(static_cast<size_t>(NumElements(weight))), v(static_cast<size_t>(4 * taps)), values = u;
  for (double& value : u) value = static_cast<double>(rng.Between(-3, 3)) / 4;
  for (double& value : v) value = std::exp2(static_cast<double>(rng.Between(-1, 2)));
  const int64_t volume = NumElements(weight) / 4;
  for (int64_t i = 0; i < NumElements(weight); ++i) {
    const int64_t tap = i / stride % taps;
    values[static_cast<size_t>(i)] = u[static_cast<size_t>(i - tap * stride)] * v[static_cast<size_t>(i / volume * taps + tap)];
  }
  ValueId w = e.Constant(Tensor::FromDoubles({DType::kF32, weight}, values));
  Shape rows(weight.size(), 1);
  rows[0] = weight[0];
  if (rng.Flip()) w = e.Mul(SampleWeight(e, rng, rows, "scale"), w);
  std::vector<ValueId> inputs = {e.Input("x", {DType::kF32, input}), w};
  if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {4}, "b"));
  const int64_t pad = rng.Between(0, 1);
  Attributes attrs = WindowAttributes(rank, rng.Between(1, 2), 1, pad);
  attrs.Set("group", group);
  e.Output("y", e.Op("Conv", inputs, attrs));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "separable_kernel";
  rule.family = "kernel shape";
  rule.before = "Conv(x, w) where w[o, c, .., k_a, ..] = u[o, c, ..] * v[o, k_a]";
  rule.after = "Conv(Conv(x, u), v){group O}";
  rule.precondition = "literal weights whose stored numbers are exactly such products (a folded batch norm's scale moves to v)";
  rule.reads_values = true;
  rule.loses_when = "the kernel is small: the second pass reads everything again";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::separable_kernel
