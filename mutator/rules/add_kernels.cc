// A sum of linear operators on one input becomes one operator with the sum of their weights.
//
//   before  Conv(x, v, p) + Conv(x, w, q) + .. [+ x] [+ BatchNorm(x)]
//   after   Conv(x, v + w + .. + 1, p + q + ..)
//   before  MatMul(x, v) + MatMul(x, w) + .. [+ x]
//   after   MatMul(x, v + w + .. + 1)
//
// Exact: kernels of different extents are embedded in one window by where they read, and x is a
// kernel of one tap. Residual adds around a single convolution and parallel branches disappear.
//
// Source: RepVGG (Ding et al. 2021), structural re-parameterization.

#include <algorithm>
#include <optional>

#include "mutator/batch_norm.h"
#include "mutator/conv_at.h"
#include "mutator/conv_chain.h"
#include "mutator/parallel.h"
#include "mutator/sample.h"

namespace mendel::rules::add_kernels {
namespace {

constexpr size_t kMaxTerms = 8;
constexpr double kMaxGrowth = 1.5;  // taps

struct Sum {
  ValueId x;
  std::vector<int32_t> linear;  ///< Convs or MatMuls of x
  std::vector<int32_t> norms;   ///< batch normalizations of x
  int64_t copies = 0;           ///< copies of x
  std::vector<ValueId> rest;    ///< other terms
  std::vector<int32_t> adds;
};

bool IsAddOf(const Graph& graph, int32_t id, const TensorType& type) {
  const Node& node = graph.node(id);
  return node.op->name == "Add" && node.outputs[0] == type && graph.type(node.inputs[0]) == type &&
         graph.type(node.inputs[1]) == type;
}

bool IsLinear(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  if (IsInput(node) || node.inputs.empty() || graph.OnlyUser(value.node) < 0 ||
      IsWeight(graph, node.inputs[0]))
    return false;
  if (node.op->name == "MatMul")
    return IsWeight(graph, node.inputs[1]) && graph.type(node.inputs[1]).shape.size() == 2;
  if (node.op->name != "Conv" || !IsFoldableConv(graph, value.node)) return false;
  const std::vector<Window> windows = ShapeOf(graph, value.node).windows;
  return std::all_of(windows.begin(), windows.end(),
                     [](const Window& w) { return w.kernel == 1 || w.dilation == 1; });
}

/// Terms of the Adds that end with `value`, left to right.
void Flatten(const Graph& graph, ValueId value, bool root, std::vector<ValueId>& terms, Sum& sum) {
  if (!IsAddOf(graph, value.node, graph.type(value)) || (!root && graph.OnlyUser(value.node) < 0)) {
    terms.push_back(value);
    return;
  }
  for (ValueId input : graph.node(value.node).inputs) Flatten(graph, input, false, terms, sum);
  sum.adds.push_back(value.node);
}

/// True where `id` can be computed as one operator with `like`, which reads the same value.
bool Alike(const Graph& graph, int32_t id, int32_t like) {
  const Node &a = graph.node(id), &b = graph.node(like);
  if (a.op != b.op || a.inputs[0] != b.inputs[0]) return false;
  return a.op->name == "MatMul" || (a.attrs.IntList("strides") == b.attrs.IntList("strides") &&
                                    a.attrs.Int("group") == b.attrs.Int("group"));
}

std::vector<std::vector<Window>> WindowsOfAll(const Graph& graph, const Sum& sum) {
  std::vector<std::vector<Window>> windows;
  for (int32_t id : sum.linear) windows.push_back(ShapeOf(graph, id).windows);
  if (sum.copies > 0 || !sum.norms.empty()) windows.emplace_back(windows[0].size());  // one tap
  return windows;
}

bool Worthwhile(const Graph& graph, const Sum& sum) {
  if (sum.linear.size() + sum.norms.size() + (sum.copies > 0 ? 1 : 0) < 2) return false;
  const Node& first = graph.node(sum.linear[0]);
  if (first.op->name == "MatMul") return sum.norms.empty();
  const Ints& strides = first.attrs.IntList("strides");
  const bool moves = std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s != 1; });
  if (moves && (sum.copies > 0 || !sum.norms.empty())) return false;
  double before = 0;
  for (int32_t id : sum.linear)
    before += static_cast<double>(NumElements(graph.type(graph.node(id).inputs[1])));
  const Shape& w = graph.type(first.inputs[1]).shape;
  return static_cast<double>(w[0] * w[1] *
                             NumElements(HullOf(WindowsOfAll(graph, sum)).Extents())) <=
         kMaxGrowth * before;
}

std::optional<Sum> SumEndingAt(const Graph& graph, int32_t id) {
  if (!IsAddOf(graph, id, graph.node(id).outputs[0]) || IsWeight(graph, {id, 0}))
    return std::nullopt;
  Sum all;
  std::vector<ValueId> terms;
  Flatten(graph, {id, 0}, true, terms, all);
  if (terms.size() > kMaxTerms) return std::nullopt;
  for (ValueId like : terms) {
    if (!IsLinear(graph, like)) continue;
    Sum sum = all;
    sum.x = graph.node(like.node).inputs[0];
    for (ValueId term : terms) {
      const Node& node = graph.node(term.node);
      if (term == sum.x) {
        ++sum.copies;
      } else if (IsLinear(graph, term) && Alike(graph, term.node, like.node)) {
        sum.linear.push_back(term.node);
      } else if (graph.OnlyUser(term.node) >= 0 && IsConstantBatchNorm(graph, term.node) &&
                 node.inputs[0] == sum.x) {
        sum.norms.push_back(term.node);
      } else {
        sum.rest.push_back(term);
      }
    }
    if (Worthwhile(graph, sum)) return sum;
  }
  return std::nullopt;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const std::optional<Sum> sum = SumEndingAt(graph, node);
  if (!sum.has_value()) return {};
  if (graph.OnlyUser(node) >= 0 &&
      IsAddOf(graph, graph.users(node)[0], graph.node(node).outputs[0]))
    return {};  // further on
  Match match{sum->linear, {}};
  match.nodes.insert(match.nodes.end(), sum->norms.begin(), sum->norms.end());
  match.nodes.insert(match.nodes.end(), sum->adds.begin(), sum->adds.end());
  std::sort(match.nodes.begin(), match.nodes.end());
  return {match};
}

void AddTo(Emitter& e, std::optional<ValueId>& sum, ValueId term) {
  sum = sum.has_value() ? e.Add(*sum, term) : term;
}

/// The weight of `shape` that gives back its input `times` times: rows of the unit matrix, repeated
/// group by group.
ValueId Unit(Emitter& e, DType dtype, Shape shape, bool conv, int64_t times) {
  if (conv) std::fill(shape.begin() + 2, shape.end(), 1);
  std::vector<double> values(static_cast<size_t>(NumElements(shape)), 0);
  for (int64_t o = 0; o < shape[0]; ++o)
    values[static_cast<size_t>(o * shape[1] + o % shape[1])] = static_cast<double>(times);
  return e.Constant(Tensor::FromDoubles({dtype, shape}, values));
}

ValueId SumOfMatMuls(Emitter& e, const Graph& graph, const Sum& sum, ValueId x) {
  std::optional<ValueId> w;
  for (int32_t id : sum.linear)
    AddTo(e, w, e.CopyConstantExpression(graph, graph.node(id).inputs[1]));
  if (sum.copies > 0) AddTo(e, w, Unit(e, e.type(x).dtype, e.shape(*w), false, sum.copies));
  return e.MatMul(x, *w);
}

ValueId SumOfConvs(Emitter& e, const Graph& graph, const Sum& sum, ValueId x) {
  const std::vector<std::vector<Window>> windows = WindowsOfAll(graph, sum);
  const TapHull hull = HullOf(windows);
  const Shape shape = graph.type(graph.node(sum.linear[0]).inputs[1]).shape;
  std::optional<ValueId> w, bias;
  for (size_t k = 0; k < sum.linear.size(); ++k) {
    const Node& conv = graph.node(sum.linear[k]);
    AddTo(e, w, EmbedTaps(e, e.CopyConstantExpression(graph, conv.inputs[1]), windows[k], hull));
    if (conv.inputs.size() > 2) AddTo(e, bias, e.CopyConstantExpression(graph, conv.inputs[2]));
  }
  const DType dtype = e.type(x).dtype;
  if (sum.copies > 0)
    AddTo(e, w, EmbedTaps(e, Unit(e, dtype, shape, true, sum.copies), windows.back(), hull));
  for (int32_t norm : sum.norms) {
    const ChannelAffine affine = AffineOf(e, graph, norm);
    AddTo(e, w,
          EmbedTaps(e, ScaleRows(e, Unit(e, dtype, shape, true, 1), affine.factor), windows.back(),
                    hull));
    AddTo(e, bias, affine.shift);
  }
  const ConvShape first = ShapeOf(graph, sum.linear[0]);
  std::vector<Reads> reads;
  for (size_t d = 0; d < first.windows.size(); ++d)
    reads.push_back({hull.first[d], first.out_spatial[d], first.windows[d].stride, 1});
  return ConvAt(e, x, *w, bias, reads, first.group);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  const std::optional<Sum> sum = SumEndingAt(subprogram, subprogram.outputs()[0].value.node);
  if (!sum.has_value()) return absl::FailedPreconditionError("no sum of linear operators");
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  const ValueId x = OperandOf(e, subprogram, sum->x, inputs);
  const bool conv = subprogram.node(sum->linear[0]).op->name == "Conv";
  ValueId y = conv ? SumOfConvs(e, subprogram, *sum, x) : SumOfMatMuls(e, subprogram, *sum, x);
  for (ValueId term : sum->rest) y = e.Add(y, OperandOf(e, subprogram, term, inputs));
  e.Output("out0", y);
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const bool conv = rng.Between(0, 3) > 0;
  const int64_t group = rng.Between(1, 2), stride = rng.Between(1, 2);
  const ValueId x =
      e.Op("Relu", {e.Input("x", {DType::kF32, conv ? Shape{2, 4, 6, 5} : Shape{2, 3, 4}})});
  const Shape kernels[] = {{3, 3}, {1, 3}, {3, 1}, {1, 1}};
  std::optional<ValueId> y;
  for (int64_t k = 0, terms = rng.Between(1, 3); k < terms; ++k) {
    const Shape& kernel = kernels[k == 0 ? 0 : rng.Below(4)];
    const std::string number = std::to_string(k);
    if (!conv) {
      AddTo(e, y, e.MatMul(x, SampleWeight(e, rng, {4, 4}, "w" + number)));
      continue;
    }
    std::vector<ValueId> inputs = {
        x, SampleWeight(e, rng, {4, 4 / group, kernel[0], kernel[1]}, "w" + number)};
    if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {4}, "b" + number));
    const Ints pads = {kernel[0] / 2, kernel[1] / 2, kernel[0] / 2, kernel[1] / 2};
    AddTo(e, y,
          e.Op("Conv", inputs,
               {{"strides", Ints(2, stride)},
                {"dilations", Ints{1, 1}},
                {"pads", pads},
                {"group", group}}));
  }
  if (e.shape(x) == e.shape(*y) && rng.Flip()) y = rng.Flip() ? e.Add(x, *y) : e.Add(*y, x);
  if (conv && e.shape(x) == e.shape(*y) && rng.Flip()) {
    std::vector<ValueId> norm = {x};
    for (const char* name : {"scale", "shift", "mean"})
      norm.push_back(SampleWeight(e, rng, {4}, name));
    norm.push_back(e.Constant(Tensor::Filled({DType::kF32, {4}}, 4), "variance"));
    y = e.Add(*y, e.Op("BatchNormalization", norm));
  }
  if (rng.Flip()) y = e.Add(*y, e.Input("r", e.type(*y)));
  e.Output("y", *y);
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "add_kernels";
  rule.family = "linear order";
  rule.before =
      "Conv(x, v) + Conv(x, w) + .. + x + BatchNorm(x), MatMul(x, v) + MatMul(x, w) + .. + x";
  rule.after = "Conv(x, v + w + .. + 1) in one window, MatMul(x, v + w + .. + 1)";
  rule.precondition =
      "one input, constant weights, equal strides and groups, dilation 1, each read once; at most "
      "1.5 times the taps";
  rule.loses_when = "the common window has more taps than the branches together";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::add_kernels
