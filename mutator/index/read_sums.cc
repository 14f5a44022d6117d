// Reading elementwise sums and products, scalings and means.

#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/window.h"
#include "mutator/batch_norm.h"
#include "mutator/index/reader.h"

namespace mendel {
namespace {

constexpr int64_t kMostScale = 1024;  // of numerators and denominators that are read as numbers

/// A stored number as a fraction, where it is a small one.
std::optional<std::pair<int64_t, int64_t>> LiteralFraction(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  if (!IsConstant(node) || !SymbolName(node).empty() || NumElements(node.outputs[0]) != 1)
    return std::nullopt;
  const double number = ConstantValue(node).DoubleAt(0);
  for (int64_t denominator = 1; denominator <= kMostScale; denominator *= 2) {
    const double numerator = number * static_cast<double>(denominator);
    if (std::abs(numerator) > kMostScale || numerator != std::floor(numerator)) continue;
    return std::make_pair(static_cast<int64_t>(numerator), denominator);
  }
  return std::nullopt;
}

Terms Scaled(Terms terms, int64_t numerator, int64_t denominator) {
  if (denominator < 0) numerator = -numerator, denominator = -denominator;
  for (IndexTerm& term : terms) {
    term.numerator *= numerator;
    term.denominator *= denominator;
  }
  return terms;
}

/// An operand of a result that it is broadcast to, zero outside the result.
std::optional<Terms> ReadBroadcast(ExpressionReader& reader, ValueId value, const Shape& result,
                                   const Forms& at) {
  const Shape& own = reader.shape(value);
  const size_t skip = result.size() - own.size();
  Shape repeated;
  Forms repeated_at;
  for (size_t d = 0; d < result.size(); ++d) {
    if (d >= skip && own[d - skip] == result[d]) continue;
    repeated.push_back(result[d]);
    repeated_at.push_back(at[d]);
  }
  Terms terms = reader.Read(value, BroadcastForms(own, result, at));
  return reader.Guarded(std::move(terms), repeated, repeated_at);
}

std::optional<Terms> ReadSum(ExpressionReader& reader, const Node& node, const Forms& at,
                             int64_t sign) {
  Terms terms;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    auto part = ReadBroadcast(reader, node.inputs[k], node.outputs[0].shape, at);
    if (!part.has_value()) return std::nullopt;
    const Terms scaled = Scaled(*std::move(part), k == 0 ? 1 : sign, 1);
    terms.insert(terms.end(), scaled.begin(), scaled.end());
  }
  return terms;
}

/// The product of a value with itself.
Terms Squared(ExpressionReader& reader, ValueId value, const Forms& at) {
  const Terms left = reader.ReadFactors(value, at);
  if (left.size() > 1) reader.has_square = true;
  return reader.MultiplyOut({}, {left, reader.ReadFactors(value, at)});
}

/// Positions of the operand of a reduction over `axes`, new sums being added to `term`; nullopt
/// where a dimension that is kept would need a guard.
std::optional<Forms> ReducedForms(ExpressionReader& reader, const Node& node, const Forms& at,
                                  IndexTerm& term) {
  const Shape& x = reader.shape(node.inputs[0]);
  const Ints& axes = node.attrs.IntList("axes");
  const bool keeps = node.attrs.Int("keepdims") != 0;
  Forms forms;
  size_t next = 0;
  for (size_t d = 0; d < x.size(); ++d) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) == axes.end()) {
      forms.push_back(at[next++]);
      continue;
    }
    if (keeps && !reader.Inside(at[next++], 1)) return std::nullopt;
    forms.push_back(reader.NewSum(term, x[d]));
  }
  return forms;
}

int64_t CountOf(const ExpressionReader& reader, const IndexTerm& term) {
  int64_t count = 1;
  for (const Iterator sum : term.sums) count *= reader.extents[static_cast<size_t>(sum)];
  return count;
}

}  // namespace

std::optional<Terms> ReadMul(ExpressionReader& reader, const Node& node, const Forms& at) {
  reader.has_product = true;
  const Shape& result = node.outputs[0].shape;
  if (reader.expansion == Expansion::kViews) {
    IndexTerm term;
    for (const ValueId input : node.inputs) {
      term.factors.push_back(
          reader.ReadOperand(input, BroadcastForms(reader.shape(input), result, at)));
    }
    return Terms{term};
  }
  for (const size_t k : {size_t{0}, size_t{1}}) {
    const auto scale = LiteralFraction(reader.graph(), node.inputs[k]);
    if (!scale.has_value() || reader.shape(node.inputs[1 - k]) != result) continue;
    return Scaled(reader.Read(node.inputs[1 - k], at), scale->first, scale->second);
  }
  if (node.inputs[0] == node.inputs[1]) return Squared(reader, node.inputs[0], at);
  std::vector<Terms> operands;
  for (const ValueId input : node.inputs)
    operands.push_back(reader.ReadFactors(input, BroadcastForms(reader.shape(input), result, at)));
  return reader.MultiplyOut({}, operands);
}

std::optional<Terms> ReadDiv(ExpressionReader& reader, const Node& node, const Forms& at) {
  const ValueId by = node.inputs[1];
  const Shape& result = node.outputs[0].shape;
  if (reader.expansion == Expansion::kViews) return std::nullopt;
  const auto scale = LiteralFraction(reader.graph(), by);
  if (scale.has_value() && scale->first != 0 && reader.shape(node.inputs[0]) == result)
    return Scaled(reader.Read(node.inputs[0], at), scale->second, scale->first);
  const Factor divisor =
      reader.LeafFactor({by, LeafKind::kReciprocal}, BroadcastForms(reader.shape(by), result, at));
  if (!reader.IsWeight(by)) return std::nullopt;
  return reader.MultiplyOut(
      {}, {reader.Read(node.inputs[0], BroadcastForms(reader.shape(node.inputs[0]), result, at)),
           {{{}, {divisor}}}});
}

std::optional<Terms> ReadAdd(ExpressionReader& reader, const Node& node, const Forms& at) {
  return ReadSum(reader, node, at, 1);
}

std::optional<Terms> ReadSub(ExpressionReader& reader, const Node& node, const Forms& at) {
  if (reader.expansion == Expansion::kViews) return std::nullopt;
  return ReadSum(reader, node, at, -1);
}

std::optional<Terms> ReadNeg(ExpressionReader& reader, const Node& node, const Forms& at) {
  if (reader.expansion == Expansion::kViews) return std::nullopt;
  return Scaled(reader.Read(node.inputs[0], at), -1, 1);
}

std::optional<Terms> ReadExpand(ExpressionReader& reader, const Node& node, const Forms& at) {
  if (reader.expansion == Expansion::kViews) return std::nullopt;
  return ReadBroadcast(reader, node.inputs[0], node.outputs[0].shape, at);
}

std::optional<Terms> ReadReduceSum(ExpressionReader& reader, const Node& node, const Forms& at) {
  IndexTerm sums;
  const auto forms = ReducedForms(reader, node, at, sums);
  if (!forms.has_value()) return std::nullopt;
  return reader.MultiplyOut(sums, {reader.Read(node.inputs[0], *forms)});
}

std::optional<Terms> ReadReduceMean(ExpressionReader& reader, const Node& node, const Forms& at) {
  if (reader.expansion == Expansion::kViews) return std::nullopt;
  auto terms = ReadReduceSum(reader, node, at);
  if (!terms.has_value()) return std::nullopt;
  const int64_t count = NumElements(reader.shape(node.inputs[0])) / NumElements(node.outputs[0]);
  return Scaled(*std::move(terms), 1, count);
}

std::optional<Terms> ReadReduceSumSquare(ExpressionReader& reader, const Node& node,
                                         const Forms& at) {
  if (reader.expansion == Expansion::kViews) return std::nullopt;
  IndexTerm sums;
  const auto forms = ReducedForms(reader, node, at, sums);
  if (!forms.has_value()) return std::nullopt;
  reader.has_product = true;
  return reader.MultiplyOut(sums, {Squared(reader, node.inputs[0], *forms)});
}

std::optional<Terms> ReadAveragePool(ExpressionReader& reader, const Node& node, const Forms& at) {
  if (reader.expansion == Expansion::kViews || node.attrs.Int("ceil_mode") != 0)
    return std::nullopt;
  const Shape& x = reader.shape(node.inputs[0]);
  const std::vector<Window> windows =
      WindowsOf(Shape(x.begin() + 2, x.end()), node.attrs.IntList("kernel_shape"), node.attrs);
  IndexTerm sums;
  Forms forms = {at[0], at[1]};
  for (size_t d = 0; d < windows.size(); ++d) {
    const Window& window = windows[d];
    const bool padded = window.pad_begin > 0 || window.pad_end > 0;
    if (padded && node.attrs.Int("count_include_pad") == 0) return std::nullopt;
    if (!reader.Inside(at[d + 2], node.outputs[0].shape[d + 2])) return std::nullopt;
    const Affine tap = reader.NewSum(sums, window.kernel);
    forms.push_back(at[d + 2] * window.stride + tap * window.dilation +
                    Affine::Constant(-window.pad_begin));
  }
  return Scaled(reader.MultiplyOut(sums, {reader.Read(node.inputs[0], forms)}), 1,
                CountOf(reader, sums));
}

std::optional<Terms> ReadBatchNormalization(ExpressionReader& reader, const Node& node,
                                            const Forms& at) {
  const ValueId norm = reader.CurrentValue();
  if (reader.expansion == Expansion::kViews || !IsConstantBatchNorm(reader.graph(), norm.node))
    return std::nullopt;
  auto shift = reader.Guarded({{{}, {reader.LeafFactor({norm, LeafKind::kNormShift}, {at[1]})}}},
                              node.outputs[0].shape, at);
  const Factor factor = reader.LeafFactor({norm, LeafKind::kNormFactor}, {at[1]});
  Terms terms = reader.MultiplyOut({}, {reader.Read(node.inputs[0], at), {{{}, {factor}}}});
  if (!shift.has_value()) return std::nullopt;
  terms.insert(terms.end(), shift->begin(), shift->end());
  return terms;
}

}  // namespace mendel
