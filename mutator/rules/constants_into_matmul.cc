// Constant rows around a matrix product are folded into its weight and bias.
//
//   before  ((x * s + t) * w + b) * r     s, t, b, r: constant rows or numbers; some may be absent
//   after   x * (s*w*r) + (t*w + b)*r
//
// Exact: s scales rows of w, r its columns, and a product has no padding that a shift could miss.
// Batch normalizations of matrices before and behind the product count as x * s + t and y * r + u.
// The affine end of a layer normalization goes into the next product. Passes over the data are
// saved.

#include <optional>
#include <string>
#include <string_view>

#include "graph/emitter.h"
#include "mutator/batch_norm.h"
#include "mutator/parallel.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::constants_into_matmul {
namespace {

/// The operand of `node` (Mul or Add) that is a constant row, or one element, beside a value of the
/// result's type; else -1.
int RowOperand(const Graph& graph, const Node& node) {
  if (node.op->name != "Mul" && node.op->name != "Add") return -1;
  for (int k : {1, 0}) {
    const ValueId row = node.inputs[static_cast<size_t>(k)],
                  other = node.inputs[static_cast<size_t>(1 - k)];
    const Shape& shape = graph.type(row).shape;
    if (!IsWeight(graph, row) || IsWeight(graph, other) || graph.type(other) != node.outputs[0])
      continue;
    const int64_t count = NumElements(shape);
    if (count == 1 ||
        (!shape.empty() && count == shape.back() && count == node.outputs[0].shape.back()))
      return k;
  }
  return -1;
}

bool IsProduct(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  return node.op->name == "MatMul" && !IsWeight(graph, node.inputs[0]) &&
         IsWeight(graph, node.inputs[1]) && graph.type(node.inputs[0]).shape.size() >= 2 &&
         graph.type(node.inputs[1]).shape.size() == 2;
}

struct Site {
  ValueId x;
  const Node *scale_before = nullptr, *shift_before = nullptr, *product = nullptr, *shift = nullptr,
             *scale = nullptr;
  int32_t norm_before = -1, norm = -1;  ///< batch normalizations of matrices in place of the
                                        ///< constants before, and last of all
  std::vector<int32_t> nodes;           ///< ascending
};

/// Steps over a Mul or Add of a constant row; null where there is none.
const Node* Step(const Graph& graph, std::string_view op, bool last, ValueId& at, Site& site) {
  const Node& node = graph.node(at.node);
  if (node.op->name != op || RowOperand(graph, node) < 0 || (!last && graph.OnlyUser(at.node) < 0))
    return nullptr;
  site.nodes.insert(site.nodes.begin(), at.node);
  at = node.inputs[static_cast<size_t>(1 - RowOperand(graph, node))];
  return &node;
}

/// Steps over a batch normalization of a matrix; -1 where there is none.
int32_t StepNorm(const Graph& graph, bool last, ValueId& at, Site& site) {
  const int32_t id = at.node;
  if (!IsConstantBatchNorm(graph, id) || graph.type(at).shape.size() != 2 ||
      (!last && graph.OnlyUser(at.node) < 0))
    return -1;
  site.nodes.insert(site.nodes.begin(), id);
  at = graph.node(id).inputs[0];
  return id;
}

/// All that can be folded around a product, ending with `id`.
std::optional<Site> SiteEndingAt(const Graph& graph, int32_t id) {
  Site site;
  ValueId at{id, 0};
  site.norm = StepNorm(graph, true, at, site);
  site.scale = Step(graph, "Mul", site.nodes.empty(), at, site);
  site.shift = Step(graph, "Add", site.nodes.empty(), at, site);
  if (!IsProduct(graph, at) || (!site.nodes.empty() && graph.OnlyUser(at.node) < 0))
    return std::nullopt;
  site.product = &graph.node(at.node);
  site.nodes.insert(site.nodes.begin(), at.node);
  at = site.product->inputs[0];
  site.norm_before = StepNorm(graph, false, at, site);
  if (site.norm_before < 0) {
    site.shift_before = Step(graph, "Add", false, at, site);
    site.scale_before = Step(graph, "Mul", false, at, site);
  }
  site.x = at;
  const bool shifts_meet = site.shift_before != nullptr && site.shift != nullptr;
  const bool scales = site.scale != nullptr || site.scale_before != nullptr || site.norm >= 0 ||
                      site.norm_before >= 0;
  if (!scales && !shifts_meet) return std::nullopt;
  return site;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const std::optional<Site> site = SiteEndingAt(graph, node);
  if (!site.has_value()) return {};
  if (graph.OnlyUser(node) >= 0) {  // more is folded at once further on
    const std::optional<Site> further = SiteEndingAt(graph, graph.users(node)[0]);
    if (further.has_value() && further->product == site->product) return {};
  }
  return {{site->nodes, {}}};
}

/// The constant operand of a Mul or Add as [1, columns].
ValueId RowOf(Emitter& e, const Graph& graph, const Node& node) {
  const int64_t columns = node.outputs[0].shape.back();
  const ValueId row =
      e.CopyConstantExpression(graph, node.inputs[static_cast<size_t>(RowOperand(graph, node))]);
  const int64_t count = NumElements(e.shape(row));
  const ValueId flat = e.Reshape(row, {1, count});
  return count == columns ? flat : e.Op("Expand", {flat}, {{"shape", Ints{1, columns}}});
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  const std::optional<Site> site = SiteEndingAt(subprogram, subprogram.outputs()[0].value.node);
  if (!site.has_value()) return absl::FailedPreconditionError("nothing to fold");
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  const ValueId weight = e.CopyConstantExpression(subprogram, site->product->inputs[1]);
  ValueId w = weight;
  std::optional<ValueId> row;
  if (site->norm_before >= 0) {
    const ChannelAffine affine = AffineOf(e, subprogram, site->norm_before);
    const int64_t rows = e.shape(w)[0];
    w = e.Mul(w, e.Reshape(affine.factor, {rows, 1}));
    row = e.MatMul(e.Reshape(affine.shift, {1, rows}), weight);
  }
  if (site->scale_before != nullptr)
    w = e.Mul(w, e.Reshape(RowOf(e, subprogram, *site->scale_before), {e.shape(w)[0], 1}));
  if (site->shift_before != nullptr)
    row = e.MatMul(RowOf(e, subprogram, *site->shift_before), weight);
  if (site->shift != nullptr) {
    const ValueId bias = RowOf(e, subprogram, *site->shift);
    row = row.has_value() ? e.Add(*row, bias) : bias;
  }
  if (site->scale != nullptr) {
    const ValueId scale = RowOf(e, subprogram, *site->scale);
    w = e.Mul(w, scale);
    if (row.has_value()) row = e.Mul(*row, scale);
  }
  if (site->norm >= 0) {
    const ChannelAffine affine = AffineOf(e, subprogram, site->norm);
    const Shape columns = {1, e.shape(w)[1]};
    const ValueId factor = e.Reshape(affine.factor, columns),
                  shift = e.Reshape(affine.shift, columns);
    w = e.Mul(w, factor);
    row = row.has_value() ? e.Add(e.Mul(*row, factor), shift) : shift;
  }
  ValueId y = e.MatMul(OperandOf(e, subprogram, site->x, inputs), w);
  if (row.has_value()) y = e.Add(y, *row);
  e.Output("out0", y);
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t rows = rng.Between(2, 4), columns = rng.Between(2, 4);
  const Shape shape = rng.Flip() ? Shape{3, rows} : Shape{2, 3, rows};
  const auto constant = [&](int64_t count, const char* name) {
    const Shape kinds[] = {{count}, {1, count}, {}};
    const Shape& kind = kinds[rng.Below(3)];
    return kind.empty() ? e.Constant(Tensor::Scalar(DType::kF32, 0.75))
                        : SampleWeight(e, rng, kind, name);
  };
  const auto norm = [&](ValueId v, const std::string& name) {
    const Shape channels = {e.shape(v)[1]};
    std::vector<ValueId> operands = {v};
    for (const char* part : {"scale", "shift", "mean"})
      operands.push_back(SampleWeight(e, rng, channels, name + part));
    operands.push_back(e.Constant(Tensor::Filled({DType::kF32, channels}, 4), name + "variance"));
    return e.Op("BatchNormalization", operands);
  };
  const int64_t kinds = rng.Between(1, 63);
  ValueId x = e.Input("x", {DType::kF32, shape});
  if ((kinds & 16) && shape.size() == 2) x = norm(x, "before");
  if (kinds & 1) x = e.Mul(x, constant(rows, "s"));
  if (kinds & 2) x = e.Add(constant(rows, "t"), x);
  ValueId y = e.MatMul(x, SampleWeight(e, rng, {rows, columns}, "w"));
  if (kinds & 4) y = e.Add(y, constant(columns, "b"));
  if (kinds & 8) y = e.Mul(constant(columns, "r"), y);
  if ((kinds & 32) && shape.size() == 2) y = norm(y, "behind");
  e.Output("y", y);
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "constants_into_matmul";
  rule.family = "constants";
  rule.before =
      "(MatMul(x * s + t, w) + b) * r, batch normalizations of matrices before and behind";
  rule.after = "MatMul(x, s*w*r) + (t*w + b)*r";
  rule.precondition =
      "s, t, b, r constant, one element or one a column, some of them absent; w constant of rank "
      "2; everything read once";
  rule.loses_when = "never";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::constants_into_matmul
