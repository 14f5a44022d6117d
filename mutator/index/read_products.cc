// Reading convolutions, matrix products, contractions and elementwise products.

#include <algorithm>
#include <string>

#include "graph/window.h"
#include "mutator/index/reader.h"

namespace mendel {
namespace {

/// Positions in an operand that broadcasts into a result read at `at`.
Forms BroadcastForms(const Shape& operand, const Shape& result, const Forms& at) {
  Forms forms;
  const size_t skip = result.size() - operand.size();
  for (size_t d = 0; d < operand.size(); ++d) {
    forms.push_back(operand[d] == result[skip + d] ? at[skip + d] : Affine::Constant(0));
  }
  return forms;
}

bool AllInside(const ExpressionReader& reader, const Shape& shape, const Forms& at, size_t from) {
  for (size_t d = from; d < at.size(); ++d) {
    if (!reader.Inside(at[d], shape[d])) return false;
  }
  return true;
}

Iterator NewSum(ExpressionReader& reader, IndexTerm& term, int64_t extent) {
  reader.extents.push_back(extent);
  term.sums.push_back(static_cast<Iterator>(reader.extents.size() - 1));
  return term.sums.back();
}

/// The channel within its group, and its group; with one group the channel itself.
std::optional<std::pair<Affine, Affine>> GroupOf(ExpressionReader& reader, const Affine& channel, int64_t groups, int64_t each) {
  if (groups == 1) return std::make_pair(Affine::Constant(0), channel);
  if (each == 1) return std::make_pair(channel, Affine::Constant(0));
  auto digits = Digits(channel, each, reader.extents);
  if (!digits.has_value()) reader.WishSplit(channel, each);
  return digits;
}

void AppendBias(ExpressionReader& reader, const Node& node, const Forms& at, Terms& terms) {
  if (node.inputs.size() < 3) return;
  terms.push_back({{}, {reader.ReadOperand(node.inputs[2], {at[1]})}});
}

}  // namespace

std::optional<Terms> ReadConv(ExpressionReader& reader, const Node& node, const Forms& at) {
  const Shape& x = reader.shape(node.inputs[0]);
  const Shape& w = reader.shape(node.inputs[1]);
  if (!AllInside(reader, node.outputs[0].shape, at, node.inputs.size() > 2 ? 0 : 2)) return std::nullopt;
  const int64_t groups = node.attrs.Int("group");
  const auto group = GroupOf(reader, at[1], groups, w[0] / groups);
  if (!group.has_value()) return std::nullopt;
  const std::vector<Window> windows = WindowsOf(Shape(x.begin() + 2, x.end()), Shape(w.begin() + 2, w.end()), node.attrs);
  IndexTerm term;
  const Affine channel = Affine::Of(NewSum(reader, term, w[1]));
  Forms x_at = {at[0], group->first * w[1] + channel};
  Forms w_at = {at[1], channel};
  for (size_t d = 0; d < windows.size(); ++d) {
    const Affine tap = Affine::Of(NewSum(reader, term, windows[d].kernel));
    x_at.push_back(at[d + 2] * windows[d].stride + tap * windows[d].dilation + Affine::Constant(-windows[d].pad_begin));
    w_at.push_back(tap);
  }
  reader.has_product = true;
  term.factors = {reader.ReadOperand(node.inputs[0], x_at), reader.ReadOperand(node.inputs[1], w_at)};
  Terms terms = {term};
  AppendBias(reader, node, at, terms);
  return terms;
}

std::optional<Terms> ReadConvTranspose(ExpressionReader& reader, const Node& node, const Forms& at) {
  const Shape& x = reader.shape(node.inputs[0]);
  const Shape& w = reader.shape(node.inputs[1]);
  if (!AllInside(reader, node.outputs[0].shape, at, node.inputs.size() > 2 ? 0 : 2)) return std::nullopt;
  const int64_t depth = x[1] / node.attrs.Int("group");
  const auto group = GroupOf(reader, at[1], node.attrs.Int("group"), w[1]);
  if (!group.has_value()) return std::nullopt;
  IndexTerm term;
  const Affine channel = group->first * depth + Affine::Of(NewSum(reader, term, depth));
  Forms x_at = {at[0], channel};
  Forms w_at = {channel, group->second};
  for (size_t d = 2; d < x.size(); ++d) {
    const Affine tap = Affine::Of(NewSum(reader, term, w[d]));
    x_at.push_back(at[d] + tap * -node.attrs.IntList("dilations")[d - 2] + Affine::Constant(node.attrs.IntList("pads")[d - 2]));
    w_at.push_back(tap);
  }
  reader.has_product = true;
  // The positions are divided, which views cannot be read at.
  Factor image = reader.ReadLeaf(node.inputs[0], x_at)[0].factors[0];
  for (size_t d = 2; d < x.size(); ++d) image.index[d].divisor = node.attrs.IntList("strides")[d - 2];
  term.factors = {image, reader.ReadOperand(node.inputs[1], w_at)};
  Terms terms = {term};
  AppendBias(reader, node, at, terms);
  return terms;
}

std::optional<Terms> ReadMatMul(ExpressionReader& reader, const Node& node, const Forms& at) {
  const Shape& y = node.outputs[0].shape;
  const Shape& a = reader.shape(node.inputs[0]);
  const Shape& b = reader.shape(node.inputs[1]);
  const Shape batch(y.begin(), y.end() - 2);
  IndexTerm term;
  const Affine k = Affine::Of(NewSum(reader, term, a.back()));
  Forms a_at = BroadcastForms(Shape(a.begin(), a.end() - 2), batch, at);
  Forms b_at = BroadcastForms(Shape(b.begin(), b.end() - 2), batch, at);
  a_at.insert(a_at.end(), {at[y.size() - 2], k});
  b_at.insert(b_at.end(), {k, at[y.size() - 1]});
  reader.has_product = true;
  term.factors = {reader.ReadOperand(node.inputs[0], a_at), reader.ReadOperand(node.inputs[1], b_at)};
  return Terms{term};
}

std::optional<Terms> ReadEinsum(ExpressionReader& reader, const Node& node, const Forms& at) {
  std::string equation;
  for (char c : node.attrs.Str("equation")) {
    if (c != ' ') equation.push_back(c);
  }
  const size_t comma = equation.find(',');
  const size_t arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos) return std::nullopt;
  const std::string labels[2] = {equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1)};
  const std::string output = equation.substr(arrow + 2);
  IndexTerm term;
  std::map<char, Affine> forms;
  for (size_t d = 0; d < output.size(); ++d) forms[output[d]] = at[d];
  Forms operand_at[2];
  for (size_t side = 0; side < 2; ++side) {
    for (size_t d = 0; d < labels[side].size(); ++d) {
      if (forms.count(labels[side][d]) == 0) {
        forms[labels[side][d]] = Affine::Of(NewSum(reader, term, reader.shape(node.inputs[side])[d]));
      }
      operand_at[side].push_back(forms[labels[side][d]]);
    }
  }
  reader.has_product = true;
  term.factors = {reader.ReadOperand(node.inputs[0], operand_at[0]), reader.ReadOperand(node.inputs[1], operand_at[1])};
  return Terms{term};
}

std::optional<Terms> ReadMul(ExpressionReader& reader, const Node& node, const Forms& at) {
  reader.has_product = true;
  IndexTerm term;
  for (const ValueId input : node.inputs) {
    term.factors.push_back(reader.ReadOperand(input, BroadcastForms(reader.shape(input), node.outputs[0].shape, at)));
  }
  return Terms{term};
}

std::optional<Terms> ReadAdd(ExpressionReader& reader, const Node& node, const Forms& at) {
  Terms terms;
  for (const ValueId input : node.inputs) {
    const Shape& shape = reader.shape(input);
    if (shape != node.outputs[0].shape && !AllInside(reader, node.outputs[0].shape, at, 0)) return std::nullopt;
    const Terms part = reader.Read(input, BroadcastForms(shape, node.outputs[0].shape, at));
    terms.insert(terms.end(), part.begin(), part.end());
  }
  return terms;
}

}  // namespace mendel
