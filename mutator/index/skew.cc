// sum over w of a[b, w] * c[b + w] as sum over j of a[b, j - b] * c[j]: then b is a row of a only,
// and the product a matrix product.

#include <algorithm>

#include "base/status.h"
#include "mutator/index/derive.h"

namespace mendel {

void SkewSums(const Program& program, std::vector<Derived>& derived) {
  const IndexExpression& last = program.stages.back();
  for (size_t t = 0; t < last.terms.size(); ++t) {
    const IndexTerm& term = last.terms[t];
    if (term.factors.size() != 2) continue;
    for (const Iterator w : term.sums) {
      if (!IsGuarded(program, last, term, w)) continue;
      for (const Iterator b : last.OutputIterators()) {
        const bool both = Uses(term.factors[0], b) && Uses(term.factors[1], b);
        const auto places = OccurrencesOf(term, w);
        const bool beside = std::any_of(places.begin(), places.end(), [&](const Occurrence& at) {
          const IndexForm& form = term.factors[at.factor].index[at.dim];
          return at.coefficient == 1 && form.divisor == 1 && form.affine.Coefficient(b) == 1;
        });
        if (!both || !beside) continue;
        Derived result{Cat("skew i", w, " along i", b), program};
        IndexExpression& stage = result.program.stages.back();
        const Iterator j = stage.NewIterator(stage.extent(w) + stage.extent(b) - 1);
        std::replace(stage.terms[t].sums.begin(), stage.terms[t].sums.end(), w, j);
        Substitute(stage.terms[t], w, Affine::Of(j) + Affine::Of(b, -1));
        derived.push_back(std::move(result));
      }
    }
  }
}

}  // namespace mendel
