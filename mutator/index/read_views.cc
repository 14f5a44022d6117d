// Reading affine views.

#include <algorithm>

#include "mutator/index/reader.h"

namespace mendel {
namespace {

/// Reshape's dimensions in groups of equal products: [begin, end) of the operand and of the result.
struct DimGroup {
  size_t from_begin, from_end, to_begin, to_end;
};

std::vector<DimGroup> GroupDims(const Shape& from, const Shape& to) {
  std::vector<DimGroup> groups;
  size_t f = 0, t = 0;
  while (f < from.size() || t < to.size()) {
    DimGroup group{f, f, t, t};
    int64_t left = 1, right = 1;
    do {
      if ((left <= right && f < from.size()) || t == to.size()) {
        left *= from[f++];
      } else {
        right *= to[t++];
      }
    } while (left != right && (f < from.size() || t < to.size()));
    // A further 1 on either side belongs to whatever it stands beside.
    while (f < from.size() && from[f] == 1 && t == to.size()) ++f;
    while (t < to.size() && to[t] == 1 && f == from.size()) ++t;
    group.from_end = f;
    group.to_end = t;
    groups.push_back(group);
  }
  return groups;
}

}  // namespace

std::optional<Terms> ReadReshape(ExpressionReader& reader, const Node& node, const Forms& at) {
  const Shape& from = reader.shape(node.inputs[0]);
  const Shape& to = node.outputs[0].shape;
  Forms forms(from.size());
  for (const DimGroup& group : GroupDims(from, to)) {
    if (group.from_end - group.from_begin == 1 && group.to_end - group.to_begin == 1) {
      forms[group.from_begin] = at[group.to_begin];
      continue;
    }
    Affine flat;
    for (size_t t = group.to_begin; t < group.to_end; ++t) {
      if (!reader.Inside(at[t], to[t])) return std::nullopt;
      flat = flat * to[t] + at[t];
    }
    const Shape radices(from.begin() + static_cast<std::ptrdiff_t>(group.from_begin),
                        from.begin() + static_cast<std::ptrdiff_t>(group.from_end));
    const auto digits = MixedRadix(flat, radices, reader.extents);
    if (!digits.has_value()) {
      for (size_t d = radices.size(), base = 1; d-- > 1;) {
        base *= static_cast<size_t>(radices[d]);
        if (!Digits(flat, static_cast<int64_t>(base), reader.extents).has_value())
          reader.WishSplit(flat, static_cast<int64_t>(base));
      }
      return std::nullopt;
    }
    std::copy(digits->begin(), digits->end(),
              forms.begin() + static_cast<std::ptrdiff_t>(group.from_begin));
  }
  return reader.Read(node.inputs[0], forms);
}

std::optional<Terms> ReadTranspose(ExpressionReader& reader, const Node& node, const Forms& at) {
  const Ints& perm = node.attrs.IntList("perm");
  Forms forms(at.size());
  for (size_t d = 0; d < perm.size(); ++d) forms[static_cast<size_t>(perm[d])] = at[d];
  return reader.Read(node.inputs[0], forms);
}

std::optional<Terms> ReadSlice(ExpressionReader& reader, const Node& node, const Forms& at) {
  const Shape& x = reader.shape(node.inputs[0]);
  const Shape& y = node.outputs[0].shape;
  Forms forms;
  for (size_t d = 0; d < at.size(); ++d) {
    const int64_t start = node.attrs.IntList("starts")[d];
    const int64_t step = node.attrs.IntList("steps")[d];
    const bool whole = start == 0 && step == 1 && y[d] == x[d];
    if (!whole && !reader.Inside(at[d], y[d])) return std::nullopt;
    forms.push_back(at[d] * step + Affine::Constant(start));
  }
  return reader.Read(node.inputs[0], forms);
}

std::optional<Terms> ReadPad(ExpressionReader& reader, const Node& node, const Forms& at) {
  if (node.attrs.Str("mode") != "constant" || node.attrs.Float("value") != 0) return std::nullopt;
  const Ints& pads = node.attrs.IntList("pads");
  Forms forms;
  for (size_t d = 0; d < at.size(); ++d) {
    if (pads[d] < 0 || pads[at.size() + d] < 0) return std::nullopt;
    forms.push_back(at[d] + Affine::Constant(-pads[d]));
  }
  return reader.Read(node.inputs[0], forms);
}

std::optional<Terms> ReadConcat(ExpressionReader& reader, const Node& node, const Forms& at) {
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  const int64_t each = reader.shape(node.inputs[0])[axis];
  for (const ValueId input : node.inputs) {
    if (reader.shape(input)[axis] != each) return std::nullopt;
  }
  if (!reader.Inside(at[axis], node.outputs[0].shape[axis])) return std::nullopt;
  const auto digits = Digits(at[axis], each, reader.extents);
  if (!digits.has_value()) {
    reader.WishSplit(at[axis], each);
    return std::nullopt;
  }
  const auto& [piece, within] = *digits;
  Forms forms = at;
  forms[axis] = within;
  if (piece.terms.empty())
    return reader.Read(node.inputs[static_cast<size_t>(piece.constant)], forms);
  const int64_t pieces = static_cast<int64_t>(node.inputs.size());
  if (!piece.IsIterator() ||
      reader.extents[static_cast<size_t>(piece.terms.begin()->first)] != pieces)
    return std::nullopt;
  // Every piece is read by itself; the pieces' own forms must not mention their number yet.
  const Iterator step = piece.terms.begin()->first;
  for (const Affine& form : forms) {
    if (form.Uses(step)) return std::nullopt;
  }
  Terms read;
  for (const ValueId input : node.inputs) {
    const Terms part = reader.Read(input, forms);
    if (part.size() != 1) return std::nullopt;
    read.push_back(part[0]);
  }
  const std::optional<IndexTerm> rolled = RollTerms(read, step, reader.extents);
  if (!rolled.has_value()) return std::nullopt;
  return Terms{*rolled};
}

}  // namespace mendel
