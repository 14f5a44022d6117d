#include "tests/legal_rewrites.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "tests/graph_edit.h"
#include "tests/rewrite_place.h"

namespace mendel {
namespace {

using MaybeValue = RewrittenValue;
using Place = RewritePlace;

MaybeValue Commute(const Place& at) {
  static const std::set<std::string_view> kCommutative = {"Add", "And", "Equal", "Max",
                                                          "Min", "Mul", "Or",    "Xor"};
  if (!kCommutative.contains(at.site.node.op->name) || at.site.inputs.size() < 2 ||
      !at.IsArithmetic())
    return std::nullopt;
  std::vector<ValueId> operands = at.site.inputs;
  std::rotate(operands.begin(), operands.begin() + 1, operands.end());
  return at.Again(operands);
}

/// (a + b) + c = a + (b + c), and the same for products.
MaybeValue Associate(const Place& at) {
  if ((!at.Is("Add") && !at.Is("Mul")) || !at.IsArithmetic()) return std::nullopt;
  for (const bool left : {true, false}) {
    const ValueId outer = at.site.inputs[left ? 1 : 0];
    const ValueId pair = at.site.inputs[left ? 0 : 1];
    const Node& inner = at.builder.node(pair.node);
    if (inner.op != at.site.node.op) continue;
    const std::vector<ValueId> terms = inner.inputs;
    const MaybeValue sum = at.Again({terms[1], outer});
    return sum ? at.Again({terms[0], *sum}) : std::nullopt;
  }
  return std::nullopt;
}

/// (a + b) c = a c + b c, for Mul and MatMul.
MaybeValue Distribute(const Place& at) {
  if ((!at.Is("Mul") && !at.Is("MatMul")) || !IsFloat(at.type().dtype)) return std::nullopt;
  const Node& sum = at.builder.node(at.site.inputs[0].node);
  if (sum.op->name != "Add") return std::nullopt;
  const std::vector<ValueId> terms = sum.inputs;
  if (at.builder.type(terms[0]) != at.builder.type(terms[1])) return std::nullopt;
  const MaybeValue a = at.Again({terms[0], at.site.inputs[1]});
  const MaybeValue b = at.Again({terms[1], at.site.inputs[1]});
  return a && b ? at.Add("Add", {*a, *b}) : std::nullopt;
}

/// A B = A1 B1 + A2 B2, split along the inner dimension.
MaybeValue SplitInner(const Place& at) {
  if (!at.Is("MatMul") || !at.IsArithmetic()) return std::nullopt;
  const ValueId a = at.site.inputs[0], b = at.site.inputs[1];
  const size_t rank_a = at.builder.type(a).shape.size(), rank_b = at.builder.type(b).shape.size();
  if (rank_a < 2 || rank_b < 2) return std::nullopt;
  const int64_t inner = at.builder.type(a).shape.back();
  if (inner < 2) return std::nullopt;
  const int64_t cut = at.rng.Between(1, inner - 1);
  MaybeValue sum;
  for (const auto& [begin, end] : {std::pair{int64_t{0}, cut}, std::pair{cut, inner}}) {
    const MaybeValue left = at.Slice(a, rank_a - 1, begin, end),
                     right = at.Slice(b, rank_b - 2, begin, end);
    const MaybeValue product = left && right ? at.Again({*left, *right}) : std::nullopt;
    if (!product) return std::nullopt;
    sum = sum ? at.Add("Add", {*sum, *product}) : product;
  }
  return sum;
}

/// conv(x, w) + b, split along the input channels.
MaybeValue SplitInputChannels(const Place& at) {
  if (!at.Is("Conv") || at.site.node.attrs.Int("group") != 1) return std::nullopt;
  const int64_t channels = at.builder.type(at.site.inputs[0]).shape[1];
  if (channels < 2) return std::nullopt;
  const int64_t cut = at.rng.Between(1, channels - 1);
  MaybeValue sum;
  for (const auto& [begin, end] : {std::pair{int64_t{0}, cut}, std::pair{cut, channels}}) {
    const MaybeValue x = at.Slice(at.site.inputs[0], 1, begin, end),
                     w = at.Slice(at.site.inputs[1], 1, begin, end);
    if (!x || !w) return std::nullopt;
    std::vector<ValueId> operands = {*x, *w};
    if (!sum && at.site.inputs.size() > 2) operands.push_back(at.site.inputs[2]);
    const MaybeValue part = at.Again(operands);
    if (!part) return std::nullopt;
    sum = sum ? at.Add("Add", {*sum, *part}) : part;
  }
  return sum;
}

/// One box of the node's output, computed from the boxes of its operands that it needs.
MaybeValue Tile(const Place& at, const Box& box) {
  const OpDefinition& op = *at.site.node.op;
  std::vector<TensorType> types;
  for (ValueId input : at.site.inputs) types.push_back(at.builder.type(input));
  const auto cut = op.restrict(NodeView{types, at.site.node.attrs, at.site.node.outputs}, box);
  if (!cut.has_value()) return std::nullopt;
  std::vector<ValueId> operands;
  for (size_t k = 0; k < types.size(); ++k) {
    const Box& need = cut->inputs[k];
    if (need.Volume() == 0 && op.max_inputs == kVariadic) continue;
    const MaybeValue part = need == Box::Whole(types[k].shape)
                                ? at.site.inputs[k]
                                : at.Add("Slice", {at.site.inputs[k]},
                                         {{"starts", need.begin},
                                          {"ends", need.end},
                                          {"steps", Ints(need.begin.size(), 1)}});
    if (!part) return std::nullopt;
    operands.push_back(*part);
  }
  return at.Add(op.name, operands, cut->attrs);
}

/// Two tiles of the output computed apart and concatenated: columns of a product, channels or rows
/// of a convolution.
MaybeValue Retile(const Place& at) {
  if (at.site.node.op->restrict == nullptr || at.shape().empty()) return std::nullopt;
  const size_t d = PickIndex(at.rng, at.shape().size());
  if (at.shape()[d] < 2) return std::nullopt;
  Box first = Box::Whole(at.shape()), second = first;
  first.end[d] = second.begin[d] = at.rng.Between(1, at.shape()[d] - 1);
  const MaybeValue tail = Tile(at, second);
  return at.Concat(Tile(at, first), tail, d);
}

/// The same, the second tile put over a whole (and there wrong or right) result.
MaybeValue PatchTile(const Place& at) {
  if (at.site.node.op->restrict == nullptr || at.shape().empty()) return std::nullopt;
  Box box = Box::Whole(at.shape());
  if (box.Volume() == 0) return std::nullopt;
  for (size_t d = 0; d < at.shape().size(); ++d) {
    box.begin[d] = at.rng.Between(0, at.shape()[d] - 1);
    box.end[d] = at.rng.Between(box.begin[d] + 1, at.shape()[d]);
  }
  const MaybeValue part = Tile(at, box);
  return part ? at.Add("Patch", {at.value(), *part}, {{"boxes", Boxes{box}}}) : std::nullopt;
}

MaybeValue DoubleNegation(const Place& at) {
  if (!IsFloat(at.type().dtype)) return std::nullopt;
  const MaybeValue negative = at.Add("Neg", {at.value()});
  return negative ? at.Add("Neg", {*negative}) : std::nullopt;
}

/// Multiplied by 2^k and by 2^-k, which is exact.
MaybeValue ScaleAndBack(const Place& at) {
  if (!IsFloat(at.type().dtype)) return std::nullopt;
  const double scale = at.rng.Flip() ? 2 : 0.25;
  const MaybeValue scaled = at.Add("Mul", {at.value(), ScalarLike(at.builder, at.value(), scale)});
  return scaled ? at.Add("Mul", {*scaled, ScalarLike(at.builder, at.value(), 1 / scale)})
                : std::nullopt;
}

MaybeValue Identity(const Place& at) {
  if (!IsFloat(at.type().dtype)) return std::nullopt;
  switch (at.rng.Below(4)) {
    case 0:
      return at.Add("Add", {at.value(), ScalarLike(at.builder, at.value(), 0)});
    case 1:
      return at.Add("Mul", {ScalarLike(at.builder, at.value(), 1), at.value()});
    case 2:
      return at.Add("Div", {at.value(), ScalarLike(at.builder, at.value(), 1)});
    default: {
      const MaybeValue twice = at.Add("Add", {at.value(), at.value()});
      return twice ? at.Add("Sub", {*twice, at.value()}) : std::nullopt;
    }
  }
}

/// a - b = a + (-b).
MaybeValue SubtractionAsSum(const Place& at) {
  if (!at.Is("Sub") || !IsFloat(at.type().dtype)) return std::nullopt;
  const MaybeValue negative = at.Add("Neg", {at.site.inputs[1]});
  return negative ? at.Add("Add", {at.site.inputs[0], *negative}) : std::nullopt;
}

/// The bias of a convolution added afterwards.
MaybeValue BiasApart(const Place& at) {
  if (!at.Is("Conv") || at.site.inputs.size() < 3) return std::nullopt;
  Ints channels(at.shape().size() - 1, 1);
  channels[0] = at.shape()[1];
  const MaybeValue plain = at.Again({at.site.inputs[0], at.site.inputs[1]});
  const MaybeValue bias = at.Add("Reshape", {at.site.inputs[2]}, {{"shape", channels}});
  return plain && bias ? at.Add("Add", {*plain, *bias}) : std::nullopt;
}

/// The padding of a convolution made explicit.
MaybeValue PaddingApart(const Place& at) {
  if (!at.Is("Conv")) return std::nullopt;
  const Ints& window = at.site.node.attrs.IntList("pads");
  const size_t spatial = window.size() / 2;
  Ints pads(2 * spatial + 4, 0);
  for (size_t d = 0; d < spatial; ++d) {
    pads[2 + d] = window[d];
    pads[spatial + 4 + d] = window[spatial + d];
  }
  const MaybeValue padded = at.Add("Pad", {at.site.inputs[0]}, {{"pads", pads}});
  if (!padded) return std::nullopt;
  Attributes attrs = at.site.node.attrs;
  attrs.Set("pads", Ints(window.size(), 0));
  std::vector<ValueId> operands = at.site.inputs;
  operands[0] = *padded;
  return at.Add("Conv", operands, attrs);
}

/// A kernel grown by zeros behind it, the padding there grown as much (stride 1).
MaybeValue GrowKernel(const Place& at) {
  if (!at.Is("Conv")) return std::nullopt;
  const Ints& strides = at.site.node.attrs.IntList("strides");
  Ints pads = at.site.node.attrs.IntList("pads");
  const size_t spatial = pads.size() / 2, d = PickIndex(at.rng, spatial), rank = spatial + 2;
  if (strides[d] != 1) return std::nullopt;
  Ints zeros(2 * rank, 0);
  zeros[rank + 2 + d] = 1;
  pads[spatial + d] += at.site.node.attrs.IntList("dilations")[d];
  const MaybeValue kernel = at.Add("Pad", {at.site.inputs[1]}, {{"pads", zeros}});
  if (!kernel) return std::nullopt;
  Attributes attrs = at.site.node.attrs;
  attrs.Set("pads", pads);
  std::vector<ValueId> operands = at.site.inputs;
  operands[1] = *kernel;
  return at.Add("Conv", operands, attrs);
}

/// Exact weights only: a stored tensor replaced by its stored transpose, transposed back.
MaybeValue StoredTranspose(const Place& at) {
  if (at.weights != WeightMode::kExact || !IsConstant(at.site.node) || at.shape().size() != 2)
    return std::nullopt;
  if (SymbolName(at.site.node).empty()) return std::nullopt;
  const Tensor& value = ConstantValue(at.site.node);
  const int64_t rows = at.shape()[0], columns = at.shape()[1];
  const std::vector<double> old = value.ToDoubles();
  std::vector<double> transposed(old.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      transposed[static_cast<size_t>(j * rows + i)] = old[static_cast<size_t>(i * columns + j)];
  }
  const ValueId stored =
      at.builder.Constant(Tensor::FromDoubles({at.type().dtype, {columns, rows}}, transposed),
                          Cat("transposed ", SymbolName(at.site.node)));
  return at.Add("Transpose", {stored}, {{"perm", Ints{1, 0}}});
}

struct LegalRewrite {
  std::string_view name;
  MaybeValue (*apply)(const Place&);
};

constexpr std::array<LegalRewrite, 21> kRewrites = {{{"associate", &Associate},
                                                     {"bias apart", &BiasApart},
                                                     {"commute", &Commute},
                                                     {"distribute", &Distribute},
                                                     {"double negation", &DoubleNegation},
                                                     {"grow kernel", &GrowKernel},
                                                     {"identity", &Identity},
                                                     {"pad and slice", &PadAndSlice},
                                                     {"padding apart", &PaddingApart},
                                                     {"patch a tile", &PatchTile},
                                                     {"reshape pair", &ReshapePair},
                                                     {"retile", &Retile},
                                                     {"scale and back", &ScaleAndBack},
                                                     {"slice and concat", &SliceAndConcat},
                                                     {"split inner", &SplitInner},
                                                     {"split input channels", &SplitInputChannels},
                                                     {"stored transpose", &StoredTranspose},
                                                     {"subtraction as sum", &SubtractionAsSum},
                                                     {"transpose pair", &TransposePair},
                                                     {"transpose product", &TransposeProduct},
                                                     {"transpose through", &TransposeThrough}}};

/// Two tiles that meet near the middle of the first dimension that can be cut, channels first.
MaybeValue Halves(const Place& at) {
  if (at.site.node.op->restrict == nullptr) return std::nullopt;
  const int64_t group = at.Is("Conv") ? at.site.node.attrs.Int("group") : 1;
  for (size_t k = 1; k <= at.shape().size(); ++k) {
    const size_t d = k % at.shape().size();
    Box first = Box::Whole(at.shape()), second = first;
    const int64_t per_group = d == 1 ? at.shape()[d] / group : 1;
    const int64_t middle =
        group > 1 || d != 1 ? at.shape()[d] / per_group / 2 * per_group : at.shape()[d] / 2;
    if (middle == 0) continue;
    first.end[d] = second.begin[d] = middle;
    const MaybeValue tail = Tile(at, second);
    const MaybeValue whole = at.Concat(Tile(at, first), tail, d);
    if (whole) return whole;
  }
  return std::nullopt;
}

}  // namespace

Graph WithOtherProducts(Rng& rng, const Graph& graph, int* changed, int only) {
  static const std::set<std::string_view> kProducts = {"Conv", "ConvTranspose", "MatMul"};
  int met = 0;
  const auto edit = [&](GraphBuilder& builder, const NodeSite& site) -> std::vector<ValueId> {
    if (!kProducts.contains(site.node.op->name) || (met++ != only && only >= 0)) return {};
    const Place place{rng, builder, site, WeightMode::kSymbolic};
    for (const auto rewrite : {&SplitInner, &SplitInputChannels, &Halves}) {
      const MaybeValue value = rewrite(place);
      if (!value.has_value() || builder.type(*value) != builder.type(site.outputs[0])) continue;
      ++*changed;
      return {*value};
    }
    return {};
  };
  auto rewritten = EditGraph(graph, edit);
  MENDEL_CHECK(rewritten.ok());
  return *std::move(rewritten);
}

Graph RandomLegalRewrite(Rng& rng, const Graph& graph, int count, WeightMode weights,
                         std::map<std::string, int>* used) {
  std::set<int32_t> wanted;
  for (int k = 0; k < count; ++k)
    wanted.insert(static_cast<int32_t>(PickIndex(rng, graph.nodes().size())));
  const auto edit = [&](GraphBuilder& builder, const NodeSite& site) -> std::vector<ValueId> {
    if (!wanted.contains(site.id) || site.outputs.size() != 1) return {};
    for (int attempt = 0; attempt < 12; ++attempt) {
      const LegalRewrite& rewrite = kRewrites[PickIndex(rng, kRewrites.size())];
      const MaybeValue value = rewrite.apply({rng, builder, site, weights});
      if (!value.has_value() || builder.type(*value) != builder.type(site.outputs[0])) continue;
      if (used != nullptr) ++(*used)[std::string(rewrite.name)];
      return {*value};
    }
    return {};
  };
  auto rewritten = EditGraph(graph, edit);
  MENDEL_CHECK(rewritten.ok());
  return Shuffled(rng, *rewritten);
}

}  // namespace mendel
