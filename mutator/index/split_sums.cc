// k = m*u + v: reduction iterators split, unrolled and tightened.

#include <algorithm>

#include "base/status.h"
#include "mutator/index/derive.h"

namespace mendel {
namespace {

constexpr int64_t kSmallKernel = 3;
constexpr int64_t kMostTerms = 9;

/// Strides and divisors that k stands beside, and 3 for kernels larger than that.
void WantSplits(const Program& program, const IndexTerm& term, Iterator k,
                std::vector<Wanted>& wanted) {
  const IndexExpression& stage = program.stages.back();
  const int64_t extent = stage.extent(k);
  std::vector<int64_t> factors;
  for (const Occurrence& at : OccurrencesOf(term, k)) {
    const IndexForm& form = term.factors[at.factor].index[at.dim];
    const int64_t mine = at.coefficient < 0 ? -at.coefficient : at.coefficient;
    if (form.divisor > 1) factors.push_back(form.divisor);
    for (const auto& [other, coefficient] : form.affine.terms) {
      if (other == k || form.divisor > 1) continue;
      if (coefficient > mine && coefficient % mine == 0) factors.push_back(coefficient / mine);
      if (coefficient <= mine && extent > kSmallKernel) factors.push_back(kSmallKernel);
    }
  }
  for (const int64_t m : factors) {
    const bool again = std::any_of(wanted.begin(), wanted.end(), [&](const Wanted& w) {
      return w.iterator == k && w.factor == m;
    });
    const bool fits = extent % m == 0 || IsGuarded(program, stage, term, k);
    if (!again && m > 1 && extent > 1 && fits) wanted.push_back({k, m, 0});
  }
}

void SplitSum(IndexExpression& stage, IndexTerm& term, const Wanted& wish) {
  const Iterator outer = stage.NewIterator(CeilDiv(stage.extent(wish.iterator), wish.factor));
  const Iterator inner = stage.NewIterator(wish.factor);
  std::erase(term.sums, wish.iterator);
  term.sums.insert(term.sums.end(), {outer, inner});
  Substitute(term, wish.iterator, Affine::Of(outer, wish.factor) + Affine::Of(inner));
}

/// Reductions of the term that stand in no form alone.
std::vector<Wanted> NeverAlone(const IndexExpression& stage, const IndexTerm& term) {
  std::vector<Wanted> found;
  for (const Iterator sum : term.sums) {
    const std::vector<Occurrence> places = OccurrencesOf(term, sum);
    const bool composite = std::all_of(places.begin(), places.end(), [&](const Occurrence& at) {
      return IsComposite(term.factors[at.factor].index[at.dim]);
    });
    if (composite && !places.empty() && stage.extent(sum) <= kMostTerms)
      found.push_back({sum, stage.extent(sum), 0});
  }
  return found;
}

std::vector<IndexTerm> Unrolled(const IndexExpression& stage, const IndexTerm& term,
                                const std::vector<Wanted>& sums) {
  std::vector<IndexTerm> terms = {term};
  for (const Wanted& sum : sums) {
    std::vector<IndexTerm> next;
    for (const IndexTerm& part : terms) {
      for (int64_t value = 0; value < stage.extent(sum.iterator); ++value) {
        next.push_back(part);
        std::erase(next.back().sums, sum.iterator);
        Substitute(next.back(), sum.iterator, Affine::Constant(value));
      }
    }
    terms = std::move(next);
  }
  return terms;
}

/// Cuts one reduction's range to the factors' bounds; false when there is nothing to cut.
bool Tighten(const Program& program, IndexExpression& stage, IndexTerm& term, Iterator sum) {
  int64_t begin = 0, end = stage.extent(sum);
  for (const Occurrence& at : OccurrencesOf(term, sum)) {
    const IndexForm& form = term.factors[at.factor].index[at.dim];
    if (at.coefficient != 1 || IsComposite(form)) continue;
    begin = std::max(begin, -form.affine.constant);
    end = std::min(
        end, program.TensorShape(term.factors[at.factor].tensor)[at.dim] - form.affine.constant);
  }
  if (begin >= end || (begin == 0 && end == stage.extent(sum))) return false;
  const Iterator cut = stage.NewIterator(end - begin);
  std::replace(term.sums.begin(), term.sums.end(), sum, cut);
  Substitute(term, sum, Affine::Of(cut, 1, begin));
  return true;
}

}  // namespace

void SplitSums(const Program& program, std::vector<Derived>& derived) {
  const IndexExpression& stage = program.stages.back();
  for (size_t t = 0; t < stage.terms.size(); ++t) {
    if (stage.terms[t].factors.size() < 2) continue;
    std::vector<Wanted> wanted;
    for (const Iterator k : stage.terms[t].sums) WantSplits(program, stage.terms[t], k, wanted);
    for (const std::vector<Wanted>& set : Together(wanted)) {
      Derived result{"split sums", program};
      IndexExpression& split = result.program.stages.back();
      for (const Wanted& wish : set) {
        result.step += Cat(" i", wish.iterator, " by ", wish.factor);
        SplitSum(split, split.terms[t], wish);
      }
      derived.push_back(std::move(result));
    }
  }
}

void UnrollSums(const Program& program, std::vector<Derived>& derived) {
  const IndexExpression& stage = program.stages.back();
  for (size_t t = 0; t < stage.terms.size(); ++t) {
    if (stage.terms[t].factors.size() < 2) continue;
    for (const std::vector<Wanted>& set : Together(NeverAlone(stage, stage.terms[t]))) {
      int64_t count = static_cast<int64_t>(stage.terms.size()) - 1;
      int64_t values = 1;
      for (const Wanted& sum : set) values *= sum.factor;
      if (count + values > kMostTerms) continue;
      Derived result{"unroll", program};
      for (const Wanted& sum : set) result.step += Cat(" i", sum.iterator);
      IndexExpression& last = result.program.stages.back();
      const std::vector<IndexTerm> parts = Unrolled(last, last.terms[t], set);
      last.terms.erase(last.terms.begin() + static_cast<std::ptrdiff_t>(t));
      last.terms.insert(last.terms.begin() + static_cast<std::ptrdiff_t>(t), parts.begin(),
                        parts.end());
      derived.push_back(std::move(result));
    }
  }
}

void TightenSums(const Program& program, std::vector<Derived>& derived) {
  Derived result{"tighten", program};
  IndexExpression& stage = result.program.stages.back();
  bool changed = false;
  for (IndexTerm& term : stage.terms) {
    for (const Iterator sum : std::vector<Iterator>(term.sums))
      changed = Tighten(program, stage, term, sum) || changed;
  }
  if (changed) derived.push_back(std::move(result));
}

}  // namespace mendel
