// The products of attention behind the scores are computed in the order of least arithmetic.
//
//   before  heads(p * heads(x * v + b)) * w
//           heads(.) = Transpose(Reshape(.)) to [B, H, T, d] or back
//   after   sum over heads h of ((p_h * x) * v_h) * w_h, (p_h * x) * (v_h * w_h)
//           or p_h * (x * (v_h * w_h))
//
// Exact. The bias b becomes the row sums of p_h times b_h, or a bias of the merged projection. The
// first two orders win where there are fewer queries than keys (attention pooling, one new token),
// the last one where the output is narrow. Products of weights are computed when the plan is
// loaded.

#include <array>
#include <optional>
#include <utility>

#include "graph/emitter.h"
#include "mutator/parallel.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::attention_order {
namespace {

constexpr double kWorthwhile = 0.95;  // of the arithmetic before
enum Order : int64_t { kValuesLater = 1, kMergedLater = 2, kMergedFirst = 3 };

/// x [B, K, D], p [B, H, Q, K], v [D, H d], b [H d] or no value, w [H d, E].
struct Attention {
  ValueId x, p, v, b, w;
  int64_t batch = 0, heads = 0, queries = 0, keys = 0, inputs = 0, depth = 0, outputs = 0;
  std::vector<int32_t> nodes;  ///< ascending
};

/// Steps from a value to the operand of what computes it, as long as that alone reads it.
class Walk {
 public:
  Walk(const Graph& graph, ValueId from) : graph_(graph), at_(from) {}

  const Node& node() const { return graph_.node(at_.node); }
  bool Is(std::string_view op) const {
    return node().op->name == op && graph_.OnlyUser(at_.node) >= 0;
  }
  void Step(size_t operand) {
    nodes_.insert(nodes_.begin(), at_.node);
    at_ = node().inputs[operand];
  }
  /// Over Transpose{0, 2, 1, 3} and Reshape, in the given order; false elsewhere.
  bool StepOverHeads(bool reshape_first) {
    for (const bool reshape : {reshape_first, !reshape_first}) {
      if (!Is(reshape ? "Reshape" : "Transpose")) return false;
      if (!reshape && node().attrs.IntList("perm") != Ints{0, 2, 1, 3}) return false;
      Step(0);
    }
    return true;
  }
  const std::vector<int32_t>& nodes() const { return nodes_; }

 private:
  const Graph& graph_;
  ValueId at_;
  std::vector<int32_t> nodes_;
};

bool IsMatrixWeight(const Graph& graph, ValueId value) {
  return IsWeight(graph, value) && graph.type(value).shape.size() == 2;
}

/// Types as in Attention's comment.
bool Fits(const Graph& graph, const Attention& a, const Shape& merged, const Shape& values) {
  const Shape &x = graph.type(a.x).shape, &p = graph.type(a.p).shape;
  const int64_t width = a.heads * a.depth;
  return x.size() == 3 && p == Shape{x[0], a.heads, a.queries, x[1]} &&
         merged == Shape{x[0], a.queries, width} && values == Shape{x[0], a.heads, x[1], a.depth} &&
         graph.type(a.v).shape == Shape{x[2], width} &&
         (a.b.node < 0 || graph.type(a.b).shape == Shape{width}) &&
         graph.type(a.w).shape == Shape{width, a.outputs};
}

std::optional<Attention> AttentionAt(const Graph& graph, int32_t id) {
  const Node& last = graph.node(id);
  if (last.op->name != "MatMul" || !IsMatrixWeight(graph, last.inputs[1])) return std::nullopt;
  Walk walk(graph, last.inputs[0]);
  if (!walk.StepOverHeads(true) || !walk.Is("MatMul")) return std::nullopt;
  const Node& mixed = walk.node();
  const Shape& values = graph.type(mixed.inputs[1]).shape;
  if (values.size() != 4) return std::nullopt;
  walk.Step(1);
  if (!walk.StepOverHeads(false)) return std::nullopt;
  Attention a;
  a.w = last.inputs[1];
  a.b.node = -1;
  if (walk.Is("Add")) {
    const size_t row = IsWeight(graph, walk.node().inputs[1]) ? 1 : 0;
    if (!IsWeight(graph, walk.node().inputs[row])) return std::nullopt;
    a.b = walk.node().inputs[row];
    walk.Step(1 - row);
  }
  if (!walk.Is("MatMul") || !IsMatrixWeight(graph, walk.node().inputs[1])) return std::nullopt;
  a.x = walk.node().inputs[0];
  a.v = walk.node().inputs[1];
  a.p = mixed.inputs[0];
  walk.Step(0);
  if (IsWeight(graph, a.x) || IsWeight(graph, a.p) || graph.type(a.x).shape.size() != 3)
    return std::nullopt;
  const Shape& x = graph.type(a.x).shape;
  const Shape& mixed_shape = mixed.outputs[0].shape;
  a.batch = x[0], a.keys = x[1], a.inputs = x[2];
  a.heads = values[1], a.depth = values[3], a.queries = mixed_shape[2],
  a.outputs = graph.type(a.w).shape[1];
  if (!Fits(graph, a, graph.type(last.inputs[0]).shape, values)) return std::nullopt;
  a.nodes = walk.nodes();
  a.nodes.push_back(id);
  return a;
}

/// Products of numbers in the given orders, [0] being the one before.
std::array<double, 4> Arithmetic(const Attention& a) {
  const double h = static_cast<double>(a.heads), q = static_cast<double>(a.queries),
               k = static_cast<double>(a.keys);
  const double in = static_cast<double>(a.inputs), d = static_cast<double>(a.depth),
               out = static_cast<double>(a.outputs);
  return {k * in * h * d + h * q * k * d + q * h * d * out,
          h * q * k * in + q * h * in * d + q * h * d * out, h * q * k * in + q * h * in * out,
          k * in * h * out + h * q * k * out};
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const std::optional<Attention> a = AttentionAt(graph, node);
  if (!a.has_value()) return {};
  const std::array<double, 4> arithmetic = Arithmetic(*a);
  std::vector<Match> matches;
  for (const int64_t order : {kValuesLater, kMergedLater, kMergedFirst}) {
    if (arithmetic[static_cast<size_t>(order)] <= kWorthwhile * arithmetic[0])
      matches.push_back({a->nodes, {{"order", order}}});
  }
  return matches;
}

/// The weights by heads: v [H, D, d], w [H, d, E], and b [H, 1, d].
struct ByHeads {
  ValueId v, w, b;
  bool biased = false;
};

ByHeads EmitWeights(Emitter& e, const Graph& graph, const Attention& a) {
  ByHeads by;
  by.v = e.Transpose(e.Reshape(e.CopyConstantExpression(graph, a.v), {a.inputs, a.heads, a.depth}),
                     {1, 0, 2});
  by.w = e.Reshape(e.CopyConstantExpression(graph, a.w), {a.heads, a.depth, a.outputs});
  by.biased = a.b.node >= 0;
  if (by.biased) by.b = e.Reshape(e.CopyConstantExpression(graph, a.b), {a.heads, 1, a.depth});
  return by;
}

/// p_h * (x * (v_h * w_h)), the sum over heads inside the product.
ValueId EmitMergedFirst(Emitter& e, const Attention& a, const ByHeads& by, ValueId x, ValueId p) {
  const int64_t width = a.heads * a.outputs;
  ValueId y =
      e.MatMul(x, e.Reshape(e.Transpose(e.MatMul(by.v, by.w), {1, 0, 2}), {a.inputs, width}));
  if (by.biased) y = e.Add(y, e.Reshape(e.MatMul(by.b, by.w), {width}));
  y = e.Transpose(e.Reshape(y, {a.batch, a.keys, a.heads, a.outputs}), {0, 2, 1, 3});
  y = e.Reshape(y, {a.batch, a.heads * a.keys, a.outputs});
  return e.MatMul(e.Reshape(e.Transpose(p, {0, 2, 1, 3}), {a.batch, a.queries, a.heads * a.keys}),
                  y);
}

/// (p_h * x), then v_h and w_h or their product.
ValueId EmitLater(Emitter& e, const Attention& a, const ByHeads& by, ValueId x, ValueId p,
                  bool merged) {
  ValueId z = e.MatMul(e.Reshape(p, {a.batch, a.heads * a.queries, a.keys}), x);
  z = e.Reshape(z, {a.batch, a.heads, a.queries, a.inputs});
  ValueId sums;
  if (by.biased) sums = e.Op("ReduceSum", {p}, {{"axes", Ints{3}}, {"keepdims", int64_t{1}}});
  if (!merged) {
    z = e.MatMul(z, by.v);
    if (by.biased) z = e.Add(z, e.Mul(sums, by.b));
    z = e.Reshape(e.Transpose(z, {0, 2, 1, 3}), {a.batch, a.queries, a.heads * a.depth});
    return e.MatMul(z, e.Reshape(by.w, {a.heads * a.depth, a.outputs}));
  }
  z = e.Reshape(e.Transpose(z, {0, 2, 1, 3}), {a.batch, a.queries, a.heads * a.inputs});
  ValueId y = e.MatMul(z, e.Reshape(e.MatMul(by.v, by.w), {a.heads * a.inputs, a.outputs}));
  if (!by.biased) return y;
  sums = e.Reshape(e.Transpose(sums, {0, 2, 1, 3}), {a.batch, a.queries, a.heads});
  return e.Add(y, e.MatMul(sums, e.Reshape(e.MatMul(by.b, by.w), {a.heads, a.outputs})));
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match, const Predictor&) {
  const std::optional<Attention> a = AttentionAt(subprogram, subprogram.outputs()[0].value.node);
  if (!a.has_value()) return absl::FailedPreconditionError("not the products of attention");
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  const ValueId x = OperandOf(e, subprogram, a->x, inputs),
                p = OperandOf(e, subprogram, a->p, inputs);
  const ByHeads by = EmitWeights(e, subprogram, *a);
  const int64_t order = match.choices.at("order");
  e.Output("out0", order == kMergedFirst ? EmitMergedFirst(e, *a, by, x, p)
                                         : EmitLater(e, *a, by, x, p, order == kMergedLater));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const bool narrow = rng.Flip();
  const int64_t batch = rng.Between(1, 2), heads = rng.Between(1, 3), depth = rng.Between(2, 3),
                inputs = rng.Between(3, 6);
  const int64_t keys = narrow ? 3 : rng.Between(6, 8), queries = narrow ? 3 : 1,
                outputs = narrow ? 1 : rng.Between(3, 6);
  ValueId values = e.MatMul(e.Input("x", {DType::kF32, {batch, keys, inputs}}),
                            SampleWeight(e, rng, {inputs, heads * depth}, "v"));
  if (rng.Flip()) values = e.Add(values, SampleWeight(e, rng, {heads * depth}, "b"));
  values = e.Transpose(e.Reshape(values, {batch, keys, heads, depth}), {0, 2, 1, 3});
  const ValueId mixed =
      e.MatMul(e.Input("p", {DType::kF32, {batch, heads, queries, keys}}), values);
  const ValueId merged =
      e.Reshape(e.Transpose(mixed, {0, 2, 1, 3}), {batch, queries, heads * depth});
  e.Output("y", e.MatMul(merged, SampleWeight(e, rng, {heads * depth, outputs}, "w")));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "attention_order";
  rule.family = "attention";
  rule.before = "heads(p * heads(x * v + b)) * w";
  rule.after =
      "sum over heads of ((p_h * x) * v_h) * w_h, (p_h * x) * (v_h * w_h) or p_h * (x * (v_h * "
      "w_h))";
  rule.precondition =
      "constant projections, each step read once; 5 % less arithmetic: few queries, or a narrow "
      "output";
  rule.loses_when = "the new order's shapes suit the library less than they save";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::attention_order
