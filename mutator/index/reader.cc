#include "mutator/index/reader.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace mendel {
namespace {

ReadOp FindReader(std::string_view op) {
  static constexpr std::pair<std::string_view, ReadOp> kReaders[] = {{"Add", &ReadAdd},
                                                                     {"Concat", &ReadConcat},
                                                                     {"Conv", &ReadConv},
                                                                     {"ConvTranspose", &ReadConvTranspose},
                                                                     {"Einsum", &ReadEinsum},
                                                                     {"MatMul", &ReadMatMul},
                                                                     {"Mul", &ReadMul},
                                                                     {"Pad", &ReadPad},
                                                                     {"ReduceSum", &ReadReduceSum},
                                                                     {"Reshape", &ReadReshape},
                                                                     {"Slice", &ReadSlice},
                                                                     {"Transpose", &ReadTranspose}};
  const auto* entry = std::find_if(std::begin(kReaders), std::end(kReaders), [&](const auto& e) { return e.first == op; });
  return entry == std::end(kReaders) ? nullptr : entry->second;
}

/// The j-th value of an arithmetic progression through all pieces, as slope and first value; nullopt when they do not lie on one.
std::optional<Affine> Roll(const std::vector<Affine>& pieces, Iterator step) {
  const int64_t slope = pieces[1].constant - pieces[0].constant;
  for (size_t j = 0; j < pieces.size(); ++j) {
    if (pieces[j].terms != pieces[0].terms) return std::nullopt;
    if (pieces[j].constant != pieces[0].constant + slope * static_cast<int64_t>(j)) return std::nullopt;
  }
  return pieces[0] + Affine::Of(step, slope);
}

}  // namespace

Terms ExpressionReader::ReadLeaf(ValueId value, const Forms& at) {
  auto place = std::find(leaves.begin(), leaves.end(), value);
  if (place == leaves.end()) place = leaves.insert(leaves.end(), value);
  Factor factor{static_cast<int>(place - leaves.begin()), {}};
  for (const Affine& form : at) factor.index.push_back({form, 1});
  return {{{}, {factor}}};
}

std::optional<Terms> ExpressionReader::Inline(ValueId value, const Forms& at) {
  const Node& node = graph_.node(value.node);
  const size_t id = static_cast<size_t>(value.node);
  if (weights_[id] || closed_.count(value.node) > 0 || IsInput(node) || node.outputs.size() != 1) return std::nullopt;
  const ReadOp read = FindReader(node.op->name);
  if (read == nullptr || !IsFloat(node.outputs[0].dtype) || NumElements(node.outputs[0]) == 0) return std::nullopt;
  if (inlined.count(value.node) == 0 && static_cast<int>(inlined.size()) >= max_nodes_) return std::nullopt;
  inlined.insert(value.node);
  return read(*this, node, at);
}

Terms ExpressionReader::Read(ValueId value, const Forms& at) {
  const auto before = std::make_pair(inlined, leaves);
  const bool had_product = has_product;
  if (std::optional<Terms> terms = Inline(value, at)) return *std::move(terms);
  std::tie(inlined, leaves) = before;
  has_product = had_product;
  return ReadLeaf(value, at);
}

Factor ExpressionReader::ReadOperand(ValueId value, const Forms& at) {
  const auto before = std::make_pair(inlined, leaves);
  const bool had_product = has_product;
  Terms terms = Read(value, at);
  if (terms.size() == 1 && terms[0].sums.empty() && terms[0].factors.size() == 1) return terms[0].factors[0];
  std::tie(inlined, leaves) = before;
  has_product = had_product;
  return ReadLeaf(value, at)[0].factors[0];
}

void ExpressionReader::WishSplit(const Affine& form, int64_t factor) {
  for (const auto& [iterator, coefficient] : form.terms) {
    const int64_t inner = factor / std::gcd(factor, coefficient);
    const int64_t extent = extents[static_cast<size_t>(iterator)];
    if (inner > 1 && inner < extent && extent % inner == 0) {
      wish = {iterator, inner};
      return;
    }
  }
}

std::optional<IndexTerm> RollTerms(const Terms& pieces, Iterator step, const Extents& extents) {
  if (pieces.size() < 2) return std::nullopt;
  Terms same = pieces;
  for (IndexTerm& piece : same) {
    if (piece.sums.size() != same[0].sums.size() || piece.factors.size() != same[0].factors.size()) return std::nullopt;
    for (size_t s = 0; s < piece.sums.size(); ++s) {
      const Iterator mine = piece.sums[s], first = same[0].sums[s];
      if (extents[static_cast<size_t>(mine)] != extents[static_cast<size_t>(first)]) return std::nullopt;
      if (mine != first) Substitute(piece, mine, Affine::Of(first));
    }
  }
  IndexTerm rolled = same[0];
  for (size_t f = 0; f < rolled.factors.size(); ++f) {
    for (const IndexTerm& piece : same) {
      if (piece.factors[f].tensor != rolled.factors[f].tensor) return std::nullopt;
    }
    for (size_t d = 0; d < rolled.factors[f].index.size(); ++d) {
      std::vector<Affine> forms;
      for (const IndexTerm& piece : same) {
        if (piece.factors[f].index[d].divisor != rolled.factors[f].index[d].divisor) return std::nullopt;
        forms.push_back(piece.factors[f].index[d].affine);
      }
      const std::optional<Affine> form = Roll(forms, step);
      if (!form.has_value()) return std::nullopt;
      rolled.factors[f].index[d].affine = *form;
    }
  }
  return rolled;
}

}  // namespace mendel
