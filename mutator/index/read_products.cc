// Reading convolutions, matrix products, contractions and elementwise products.

#include <algorithm>
#include <string>

#include "graph/window.h"
#include "mutator/index/reader.h"

namespace mendel {
namespace {

bool AllInside(const ExpressionReader& reader, const Shape& shape, const Forms& at, size_t from) {
  for (size_t d = from; d < at.size(); ++d) {
    if (!reader.Inside(at[d], shape[d])) return false;
  }
  return true;
}

/// The channel within its group, and its group; with one group the channel itself.
std::optional<std::pair<Affine, Affine>> GroupOf(ExpressionReader& reader, const Affine& channel,
                                                 int64_t groups, int64_t each) {
  if (groups == 1) return std::make_pair(Affine::Constant(0), channel);
  if (each == 1) return std::make_pair(channel, Affine::Constant(0));
  auto digits = Digits(channel, each, reader.extents);
  if (!digits.has_value()) reader.WishSplit(channel, each);
  return digits;
}

/// Adds the bias where the result exists; false when that needs a guard that cannot be had.
bool AppendBias(ExpressionReader& reader, const Node& node, const Forms& at, Terms& terms) {
  if (node.inputs.size() < 3) return true;
  auto bias = reader.Guarded({{{}, {reader.ReadOperand(node.inputs[2], {at[1]})}}},
                             node.outputs[0].shape, at);
  if (!bias.has_value()) return false;
  terms.insert(terms.end(), bias->begin(), bias->end());
  return true;
}

/// True when no tap of an output position outside [0, extent) lies inside the input: nothing has to
/// be guarded.
bool IsVacuous(const Window& window, int64_t extent) {
  const int64_t before = window.Position(-1, window.kernel - 1),
                behind = window.Position(extent, 0);
  return before < 0 && behind >= window.input;
}

/// Positions of the result at which a window operator can be read: inside, or guarded vacuously.
bool MayRead(const ExpressionReader& reader, const std::vector<Window>& windows, const Shape& shape,
             const Forms& at) {
  for (size_t d = 0; d < windows.size(); ++d) {
    if (!reader.Inside(at[d + 2], shape[d + 2]) && !IsVacuous(windows[d], shape[d + 2]))
      return false;
  }
  return true;
}

}  // namespace

/// Positions in an operand that broadcasts into a result read at `at`.
Forms BroadcastForms(const Shape& operand, const Shape& result, const Forms& at) {
  Forms forms;
  const size_t skip = result.size() - operand.size();
  for (size_t d = 0; d < operand.size(); ++d) {
    forms.push_back(operand[d] == result[skip + d] ? at[skip + d] : Affine::Constant(0));
  }
  return forms;
}

std::optional<Terms> ReadConv(ExpressionReader& reader, const Node& node, const Forms& at) {
  const Shape& x = reader.shape(node.inputs[0]);
  const Shape& w = reader.shape(node.inputs[1]);
  const std::vector<Window> windows =
      WindowsOf(Shape(x.begin() + 2, x.end()), Shape(w.begin() + 2, w.end()), node.attrs);
  if (!MayRead(reader, windows, node.outputs[0].shape, at)) return std::nullopt;
  const int64_t groups = node.attrs.Int("group");
  const auto group = GroupOf(reader, at[1], groups, w[0] / groups);
  if (!group.has_value()) return std::nullopt;
  IndexTerm term;
  const Affine channel = reader.NewSum(term, w[1]);
  Forms x_at = {at[0], group->first * w[1] + channel};
  Forms w_at = {at[1], channel};
  for (size_t d = 0; d < windows.size(); ++d) {
    const Affine tap = reader.NewSum(term, windows[d].kernel);
    x_at.push_back(at[d + 2] * windows[d].stride + tap * windows[d].dilation +
                   Affine::Constant(-windows[d].pad_begin));
    w_at.push_back(tap);
  }
  reader.has_product = true;
  const Terms image = reader.ReadFactors(node.inputs[0], x_at);
  Terms terms = reader.MultiplyOut(term, {image, reader.ReadFactors(node.inputs[1], w_at)});
  if (!AppendBias(reader, node, at, terms)) return std::nullopt;
  return terms;
}

std::optional<Terms> ReadConvTranspose(ExpressionReader& reader, const Node& node,
                                       const Forms& at) {
  const Shape& x = reader.shape(node.inputs[0]);
  const Shape& w = reader.shape(node.inputs[1]);
  if (!AllInside(reader, node.outputs[0].shape, at, node.inputs.size() > 2 ? 0 : 2))
    return std::nullopt;
  const int64_t depth = x[1] / node.attrs.Int("group");
  const auto group = GroupOf(reader, at[1], node.attrs.Int("group"), w[1]);
  if (!group.has_value()) return std::nullopt;
  IndexTerm term;
  const Affine channel = group->first * depth + reader.NewSum(term, depth);
  Forms x_at = {at[0], channel};
  Forms w_at = {channel, group->second};
  for (size_t d = 2; d < x.size(); ++d) {
    const Affine tap = reader.NewSum(term, w[d]);
    x_at.push_back(at[d] + tap * -node.attrs.IntList("dilations")[d - 2] +
                   Affine::Constant(node.attrs.IntList("pads")[d - 2]));
    w_at.push_back(tap);
  }
  reader.has_product = true;
  // The positions are divided, which views cannot be read at.
  Factor image = reader.ReadLeaf(node.inputs[0], x_at)[0].factors[0];
  for (size_t d = 2; d < x.size(); ++d)
    image.index[d].divisor = node.attrs.IntList("strides")[d - 2];
  term.factors = {image, reader.ReadOperand(node.inputs[1], w_at)};
  Terms terms = {term};
  if (!AppendBias(reader, node, at, terms)) return std::nullopt;
  return terms;
}

std::optional<Terms> ReadMatMul(ExpressionReader& reader, const Node& node, const Forms& at) {
  const Shape& y = node.outputs[0].shape;
  const Shape& a = reader.shape(node.inputs[0]);
  const Shape& b = reader.shape(node.inputs[1]);
  const Shape batch(y.begin(), y.end() - 2);
  IndexTerm term;
  const Affine k = reader.NewSum(term, a.back());
  Forms a_at = BroadcastForms(Shape(a.begin(), a.end() - 2), batch, at);
  Forms b_at = BroadcastForms(Shape(b.begin(), b.end() - 2), batch, at);
  a_at.insert(a_at.end(), {at[y.size() - 2], k});
  b_at.insert(b_at.end(), {k, at[y.size() - 1]});
  reader.has_product = true;
  const Terms left = reader.ReadFactors(node.inputs[0], a_at);
  return reader.MultiplyOut(term, {left, reader.ReadFactors(node.inputs[1], b_at)});
}

std::optional<Terms> ReadEinsum(ExpressionReader& reader, const Node& node, const Forms& at) {
  std::string equation;
  for (char c : node.attrs.Str("equation")) {
    if (c != ' ') equation.push_back(c);
  }
  const size_t comma = equation.find(',');
  const size_t arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos) return std::nullopt;
  const std::string labels[2] = {equation.substr(0, comma),
                                 equation.substr(comma + 1, arrow - comma - 1)};
  const std::string output = equation.substr(arrow + 2);
  IndexTerm term;
  std::map<char, Affine> forms;
  for (size_t d = 0; d < output.size(); ++d) forms[output[d]] = at[d];
  Forms operand_at[2];
  for (size_t side = 0; side < 2; ++side) {
    for (size_t d = 0; d < labels[side].size(); ++d) {
      if (forms.count(labels[side][d]) == 0) {
        forms[labels[side][d]] = reader.NewSum(term, reader.shape(node.inputs[side])[d]);
      }
      operand_at[side].push_back(forms[labels[side][d]]);
    }
  }
  reader.has_product = true;
  const Terms left = reader.ReadFactors(node.inputs[0], operand_at[0]);
  return reader.MultiplyOut(term, {left, reader.ReadFactors(node.inputs[1], operand_at[1])});
}

}  // namespace mendel
