// i = m*a + b - phase: output iterators split by what the forms that hold them suggest.

#include <algorithm>
#include <set>

#include "base/status.h"
#include "mutator/index/derive.h"

namespace mendel {
namespace {

constexpr int64_t kLeastBlock = 4, kLargestBlock = 64;

int64_t Mod(int64_t a, int64_t m) { return ((a % m) + m) % m; }

/// Factors for one occurrence: the divisor, or the ratio of a reduction's coefficient to this one
/// (a dilation).
void WantFromForm(const IndexTerm& term, const IndexForm& form, Iterator i,
                  std::vector<Wanted>& wanted) {
  const int64_t mine = form.affine.Coefficient(i);
  if (form.divisor > 1) {
    if (mine == 1) wanted.push_back({i, form.divisor, Mod(form.affine.constant, form.divisor)});
    return;
  }
  for (const auto& [other, coefficient] : form.affine.terms) {
    const bool sum = std::find(term.sums.begin(), term.sums.end(), other) != term.sums.end();
    if (sum && coefficient > mine && mine > 0 && coefficient % mine == 0)
      wanted.push_back({i, coefficient / mine, 0});
  }
}

/// Blocks for a banded product: i stands in both factors, in one of them beside an iterator of
/// extent `band`.
void WantBlocks(const IndexExpression& stage, const IndexTerm& term, Iterator i,
                std::vector<Wanted>& wanted) {
  std::set<size_t> factors;
  int64_t band = 0;
  for (const Occurrence& at : OccurrencesOf(term, i)) {
    factors.insert(at.factor);
    const IndexForm& form = term.factors[at.factor].index[at.dim];
    for (const auto& [other, coefficient] : form.affine.terms) {
      if (other != i && coefficient == at.coefficient && form.divisor == 1)
        band = std::max(band, stage.extent(other));
    }
  }
  if (factors.size() < 2 || band < 2) return;
  int64_t block = kLeastBlock;
  while (2 * block <= band) block *= 2;
  for (const int64_t m : {block, 2 * block}) {
    if (m <= kLargestBlock && 2 * m <= stage.extent(i)) wanted.push_back({i, m, 0});
  }
}

bool SplitOutput(IndexExpression& stage, const Wanted& wish) {
  for (OutputDim& dim : stage.outputs) {
    const auto place = std::find(dim.iterators.begin(), dim.iterators.end(), wish.iterator);
    if (place == dim.iterators.end()) continue;
    const int64_t extent = stage.extent(wish.iterator);
    const bool alone = dim.iterators.size() == 1;
    if (!alone && (wish.phase != 0 || extent % wish.factor != 0)) return false;
    const Iterator outer = stage.NewIterator(CeilDiv(extent + wish.phase, wish.factor));
    const Iterator inner = stage.NewIterator(wish.factor);
    *place = outer;
    dim.iterators.insert(std::find(dim.iterators.begin(), dim.iterators.end(), outer) + 1, inner);
    dim.begin += wish.phase;
    const Affine value = Affine::Of(outer, wish.factor, -wish.phase) + Affine::Of(inner);
    for (IndexTerm& term : stage.terms) Substitute(term, wish.iterator, value);
    return true;
  }
  return false;
}

}  // namespace

void SplitOutputs(const Program& program, std::vector<Derived>& derived) {
  const IndexExpression& stage = program.stages.back();
  std::vector<Wanted> wanted;
  for (const Iterator i : stage.OutputIterators()) {
    std::vector<Wanted> mine;
    for (const IndexTerm& term : stage.terms) {
      if (term.factors.size() < 2) continue;
      for (const Occurrence& at : OccurrencesOf(term, i))
        WantFromForm(term, term.factors[at.factor].index[at.dim], i, mine);
      WantBlocks(stage, term, i, mine);
    }
    for (const Wanted& wish : mine) {
      const bool again = std::any_of(wanted.begin(), wanted.end(), [&](const Wanted& w) {
        return w.iterator == i && w.factor == wish.factor;
      });
      if (!again && wish.factor > 1 && stage.extent(i) > wish.factor) wanted.push_back(wish);
    }
  }
  for (const std::vector<Wanted>& set : Together(wanted)) {
    Derived result{"split outputs", program};
    bool done = true;
    for (const Wanted& wish : set) {
      result.step += Cat(" i", wish.iterator, " by ", wish.factor);
      done = done && SplitOutput(result.program.stages.back(), wish);
    }
    if (done) derived.push_back(std::move(result));
  }
}

}  // namespace mendel
