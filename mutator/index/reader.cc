#include "mutator/index/reader.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "base/work.h"

namespace mendel {
namespace {

ReadOp FindReader(std::string_view op) {
  static constexpr std::pair<std::string_view, ReadOp> kReaders[] = {
      {"Add", &ReadAdd},
      {"AveragePool", &ReadAveragePool},
      {"BatchNormalization", &ReadBatchNormalization},
      {"Concat", &ReadConcat},
      {"Conv", &ReadConv},
      {"ConvTranspose", &ReadConvTranspose},
      {"Div", &ReadDiv},
      {"Einsum", &ReadEinsum},
      {"Expand", &ReadExpand},
      {"MatMul", &ReadMatMul},
      {"Mul", &ReadMul},
      {"Neg", &ReadNeg},
      {"Pad", &ReadPad},
      {"ReduceMean", &ReadReduceMean},
      {"ReduceSum", &ReadReduceSum},
      {"ReduceSumSquare", &ReadReduceSumSquare},
      {"Reshape", &ReadReshape},
      {"Slice", &ReadSlice},
      {"Sub", &ReadSub},
      {"Transpose", &ReadTranspose}};
  const auto* entry = std::find_if(std::begin(kReaders), std::end(kReaders),
                                   [&](const auto& e) { return e.first == op; });
  return entry == std::end(kReaders) ? nullptr : entry->second;
}

constexpr int kMostReads = 320;  // of one site, a value read again on another path included
constexpr size_t kMostOperandTerms = 12, kMostOperandFactors = 8;  // of an operand of a product

/// The j-th value of an arithmetic progression through all pieces, as slope and first value;
/// nullopt when they do not lie on one.
std::optional<Affine> Roll(const std::vector<Affine>& pieces, Iterator step) {
  const int64_t slope = pieces[1].constant - pieces[0].constant;
  for (size_t j = 0; j < pieces.size(); ++j) {
    if (pieces[j].terms != pieces[0].terms) return std::nullopt;
    if (pieces[j].constant != pieces[0].constant + slope * static_cast<int64_t>(j))
      return std::nullopt;
  }
  return pieces[0] + Affine::Of(step, slope);
}

}  // namespace

bool HasTranslation(std::string_view op) { return FindReader(op) != nullptr; }

Factor ExpressionReader::LeafFactor(const IndexLeaf& leaf, const Forms& at) {
  auto place = std::find(leaves.begin(), leaves.end(), leaf);
  if (place == leaves.end()) place = leaves.insert(leaves.end(), leaf);
  Factor factor{static_cast<int>(place - leaves.begin()), {}};
  for (const Affine& form : at) factor.index.push_back({form, 1});
  return factor;
}

Terms ExpressionReader::ReadLeaf(ValueId value, const Forms& at) {
  return {{{}, {LeafFactor({value}, at)}}};
}

std::optional<Terms> ExpressionReader::Inline(ValueId value, const Forms& at) {
  const Node& node = graph_.node(value.node);
  const size_t id = static_cast<size_t>(value.node);
  if (weights_[id] || closed_.count(value.node) > 0 || IsInput(node) || node.outputs.size() != 1)
    return std::nullopt;
  const ReadOp read = FindReader(node.op->name);
  if (read == nullptr || !IsFloat(node.outputs[0].dtype) || NumElements(node.outputs[0]) == 0)
    return std::nullopt;
  if (inlined.count(value.node) == 0 && static_cast<int>(inlined.size()) >= max_nodes_)
    return std::nullopt;
  if (++reads_ > kMostReads) {
    too_large = true;
    return std::nullopt;
  }
  if (inlined.insert(value.node).second) in_order_.push_back(value.node);
  CountWork();
  current_ = value;
  return read(*this, node, at);
}

ExpressionReader::Mark ExpressionReader::Now() const {
  return {in_order_.size(), leaves.size(), has_product, has_square};
}

void ExpressionReader::GoBack(const Mark& mark) {
  for (; in_order_.size() > mark.inlined; in_order_.pop_back()) inlined.erase(in_order_.back());
  leaves.resize(mark.leaves);
  has_product = mark.has_product;
  has_square = mark.has_square;
}

Terms ExpressionReader::Read(ValueId value, const Forms& at) {
  const Mark before = Now();
  if (std::optional<Terms> terms = Inline(value, at)) return *std::move(terms);
  GoBack(before);
  return ReadLeaf(value, at);
}

bool ExpressionReader::IsWeightTerm(const IndexTerm& term) const {
  return std::all_of(term.factors.begin(), term.factors.end(), [&](const Factor& factor) {
    return IsWeightLeaf(weights_, leaves[static_cast<size_t>(factor.tensor)]);
  });
}

Terms ExpressionReader::ReadFactors(ValueId value, const Forms& at) {
  if (expansion == Expansion::kViews) return {{{}, {ReadOperand(value, at)}}};
  const Mark before = Now();
  if (depth_ + 1 >= kMostOperandFactors) return ReadLeaf(value, at);
  ++depth_;
  Terms terms = Read(value, at);
  --depth_;
  const auto moving = std::count_if(terms.begin(), terms.end(),
                                    [&](const IndexTerm& term) { return !IsWeightTerm(term); });
  const bool large = std::any_of(terms.begin(), terms.end(), [](const IndexTerm& term) {
    return term.factors.size() > kMostOperandFactors;
  });
  const bool allowed = moving <= 1 || expansion == Expansion::kAllTerms;
  if (allowed && !large && !terms.empty() && terms.size() <= kMostOperandTerms) return terms;
  GoBack(before);
  return ReadLeaf(value, at);
}

Terms ExpressionReader::MultiplyOut(const IndexTerm& term, const std::vector<Terms>& operands) {
  Terms products = {term};
  for (const Terms& operand : operands) {
    Terms next;
    for (const IndexTerm& left : products) {
      for (const IndexTerm& right : operand) {
        IndexTerm product = left;
        product.sums.insert(product.sums.end(), right.sums.begin(), right.sums.end());
        product.factors.insert(product.factors.end(), right.factors.begin(), right.factors.end());
        if (__builtin_mul_overflow(left.numerator, right.numerator, &product.numerator) ||
            __builtin_mul_overflow(left.denominator, right.denominator, &product.denominator))
          too_large = true;
        const int64_t common = std::gcd(product.numerator, product.denominator);
        if (common > 1) product.numerator /= common, product.denominator /= common;
        next.push_back(std::move(product));
      }
    }
    products = std::move(next);
  }
  return products;
}

Affine ExpressionReader::NewSum(IndexTerm& term, int64_t extent) {
  const auto add = [&](int64_t length) {
    extents.push_back(length);
    const Iterator iterator = static_cast<Iterator>(extents.size() - 1);
    term.sums.push_back(iterator);
    sum_numbers[iterator] = sums_++;
    return Affine::Of(iterator);
  };
  // The number of a sum must not depend on the splits of others: each takes two.
  const auto split = sum_splits.find(sums_);
  if (split == sum_splits.end()) {
    const Affine whole = add(extent);
    ++sums_;
    return whole;
  }
  const Affine outer = add(extent / split->second);
  return outer * split->second + add(split->second);
}

std::optional<Terms> ExpressionReader::Guarded(Terms terms, const Shape& shape, const Forms& at) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (Inside(at[d], shape[d])) continue;
    for (IndexTerm& term : terms) {
      if (!IsWeightTerm(term) || expansion == Expansion::kViews) return std::nullopt;
      term.factors.push_back(LeafFactor({{}, LeafKind::kOnes, shape[d]}, {at[d]}));
    }
  }
  return terms;
}

Factor ExpressionReader::ReadOperand(ValueId value, const Forms& at) {
  const Mark before = Now();
  Terms terms = Read(value, at);
  if (terms.size() == 1 && terms[0].sums.empty() && terms[0].factors.size() == 1)
    return terms[0].factors[0];
  GoBack(before);
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
    if (piece.sums.size() != same[0].sums.size() || piece.factors.size() != same[0].factors.size())
      return std::nullopt;
    for (size_t s = 0; s < piece.sums.size(); ++s) {
      const Iterator mine = piece.sums[s], first = same[0].sums[s];
      if (extents[static_cast<size_t>(mine)] != extents[static_cast<size_t>(first)])
        return std::nullopt;
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
        if (piece.factors[f].index[d].divisor != rolled.factors[f].index[d].divisor)
          return std::nullopt;
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
