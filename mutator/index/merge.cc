// a, b -> one iterator m = b's extent * a + b, where they occur in this proportion only: the
// inverse of splitting. What views have taken apart around a convolution is put together again.

#include <algorithm>

#include "base/status.h"
#include "mutator/index/derive.h"

namespace mendel {
namespace {

/// Every form of the term has a exactly extent(b) times as often as b.
bool InProportion(const IndexExpression& stage, const IndexTerm& term, Iterator a, Iterator b) {
  for (const Factor& factor : term.factors) {
    for (const IndexForm& form : factor.index) {
      if (form.affine.Coefficient(a) != stage.extent(b) * form.affine.Coefficient(b)) return false;
    }
  }
  return true;
}

/// Replaces a and b by `merged`.
void Join(IndexTerm& term, Iterator a, Iterator b, Iterator merged) {
  Substitute(term, a, Affine::Constant(0));
  Substitute(term, b, Affine::Of(merged));
}

void MergeOutputs(const Program& program, std::vector<Derived>& derived) {
  const IndexExpression& stage = program.stages.back();
  for (size_t d = 0; d < stage.outputs.size(); ++d) {
    const std::vector<Iterator>& iterators = stage.outputs[d].iterators;
    for (size_t k = 0; k + 1 < iterators.size(); ++k) {
      const Iterator a = iterators[k], b = iterators[k + 1];
      const bool fits =
          std::all_of(stage.terms.begin(), stage.terms.end(),
                      [&](const IndexTerm& term) { return InProportion(stage, term, a, b); });
      if (!fits) continue;
      Derived result{Cat("merge i", a, " and i", b), program};
      IndexExpression& last = result.program.stages.back();
      const Iterator merged = last.NewIterator(stage.extent(a) * stage.extent(b));
      for (IndexTerm& term : last.terms) Join(term, a, b, merged);
      last.outputs[d].iterators[k] = merged;
      std::erase(last.outputs[d].iterators, b);
      derived.push_back(std::move(result));
    }
  }
}

void MergeSums(const Program& program, size_t t, std::vector<Derived>& derived) {
  const IndexExpression& stage = program.stages.back();
  const IndexTerm& term = stage.terms[t];
  for (const Iterator a : term.sums) {
    for (const Iterator b : term.sums) {
      if (a == b || OccurrencesOf(term, b).empty() || !InProportion(stage, term, a, b)) continue;
      Derived result{Cat("merge i", a, " and i", b), program};
      IndexExpression& last = result.program.stages.back();
      const Iterator merged = last.NewIterator(stage.extent(a) * stage.extent(b));
      Join(last.terms[t], a, b, merged);
      std::replace(last.terms[t].sums.begin(), last.terms[t].sums.end(), a, merged);
      std::erase(last.terms[t].sums, b);
      derived.push_back(std::move(result));
    }
  }
}

}  // namespace

void MergeIterators(const Program& program, std::vector<Derived>& derived) {
  MergeOutputs(program, derived);
  for (size_t t = 0; t < program.stages.back().terms.size(); ++t) MergeSums(program, t, derived);
}

}  // namespace mendel
