// Simplification after every derivation, and what the derivations share.

#include <algorithm>

#include "base/status.h"
#include "mutator/index/derive.h"

namespace mendel {
namespace {

/// True when some factor is outside its tensor for every value of the iterators.
bool IsZero(const Program& program, const IndexExpression& stage, const IndexTerm& term) {
  for (const Factor& factor : term.factors) {
    const Shape shape = program.TensorShape(factor.tensor);
    for (size_t d = 0; d < shape.size(); ++d) {
      const Range range = RangeOf(factor.index[d].affine, stage.extents);
      if (range.high < 0 || range.low >= shape[d] * factor.index[d].divisor) return true;
    }
  }
  return false;
}

/// form = divisor * whole + rest, the rest's coefficients smaller than the divisor and of the
/// form's signs.
std::pair<Affine, Affine> Residue(const Affine& form, int64_t divisor) {
  Affine whole, rest;
  for (const auto& [iterator, coefficient] : form.terms) {
    const int64_t quotient = coefficient / divisor;
    whole = whole + Affine::Of(iterator, quotient);
    rest = rest + Affine::Of(iterator, coefficient - quotient * divisor);
  }
  whole.constant = FloorDiv(form.constant, divisor);
  rest.constant = form.constant - whole.constant * divisor;
  return {whole, rest};
}

/// A reduction iterator that the division determines: rest = 0 solved for it, within its extent.
bool Determine(const IndexExpression& stage, IndexTerm& term, IndexForm& form) {
  const auto [whole, rest] = Residue(form.affine, form.divisor);
  if (!RangeOf(rest, stage.extents).Within(1 - form.divisor, form.divisor)) return false;
  if (rest.terms.empty() && rest.constant == 0) {
    form = {whole, 1};
    return true;
  }
  for (Iterator sum : term.sums) {
    const int64_t coefficient = rest.Coefficient(sum);
    if (coefficient != 1 && coefficient != -1) continue;
    Affine others = rest;
    others.terms.erase(sum);
    const Affine value = others * -coefficient;
    if (!RangeOf(value, stage.extents).Within(0, stage.extent(sum))) continue;
    std::erase(term.sums, sum);
    Substitute(term, sum, value);
    return true;
  }
  return false;
}

void ResolveDivisions(const IndexExpression& stage, IndexTerm& term) {
  for (Factor& factor : term.factors) {
    for (IndexForm& form : factor.index) {
      // The first call may determine an iterator, the second then divides.
      while (form.divisor > 1 && Determine(stage, term, form)) {
      }
    }
  }
}

}  // namespace

bool IsComposite(const IndexForm& form) { return form.affine.terms.size() > 1 || form.divisor > 1; }

void Normalize(Program& program) {
  for (IndexExpression& stage : program.stages) {
    for (IndexTerm& term : stage.terms) {
      for (const Iterator sum : std::vector<Iterator>(term.sums)) {
        if (stage.extent(sum) != 1) continue;
        std::erase(term.sums, sum);
        Substitute(term, sum, Affine::Constant(0));
      }
      ResolveDivisions(stage, term);
    }
    std::erase_if(stage.terms, [&](const IndexTerm& term) { return IsZero(program, stage, term); });
  }
}

std::vector<std::vector<Wanted>> Together(const std::vector<Wanted>& wanted) {
  std::vector<std::vector<Wanted>> sets;
  for (size_t k = 0; k < wanted.size(); ++k) {
    const bool seen =
        std::any_of(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(k),
                    [&](const Wanted& other) { return other.factor == wanted[k].factor; });
    if (seen) continue;
    std::vector<Wanted> same;
    for (const Wanted& other : wanted) {
      const bool again = std::any_of(same.begin(), same.end(),
                                     [&](const Wanted& w) { return w.iterator == other.iterator; });
      if (other.factor == wanted[k].factor && !again) same.push_back(other);
    }
    if (same.size() > 1) sets.push_back(same);
  }
  for (const Wanted& wish : wanted) sets.push_back({wish});
  return sets;
}

const std::vector<NamedStep>& AllSteps() {
  static const auto* steps = new std::vector<NamedStep>{
      {"split outputs", &SplitOutputs}, {"split sums", &SplitSums}, {"unroll", &UnrollSums},
      {"tighten", &TightenSums},        {"stage", &StageProducts},  {"skew", &SkewSums},
      {"merge", &MergeIterators}};
  return *steps;
}

}  // namespace mendel
