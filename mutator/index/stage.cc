// Factor staging: T = the product over the positions themselves, then T read at the composite
// positions.

#include <algorithm>
#include <set>

#include "base/status.h"
#include "mutator/index/derive.h"

namespace mendel {
namespace {

constexpr double kMostGrowth = 64;  // elements of a stage over those of what it is made of

/// The replacement of a form in the stage: `inner` over stage iterators, `outer` the form at which
/// the result reads the stage.
struct Position {
  size_t factor, dim;
  std::set<Iterator> merged;  ///< part of the form that becomes one iterator
  /// The new iterator covers all positions, not only those inside the tensor.
  bool relaxed = false;
};

/// The stage being made: the product's own expression and the term that reads it.
struct Staging {
  IndexExpression stage;
  IndexTerm inner;             ///< in iterators of the stage
  Factor reading;              ///< T at the old iterators
  std::vector<Iterator> dims;  ///< stage iterators
};

/// A new stage iterator for the merged part of a form, and where the result finds it.
void Merge(const Program& program, const IndexExpression& old, const Position& what,
           Staging& staging) {
  IndexForm& form = staging.inner.factors[what.factor].index[what.dim];
  Affine part, rest = form.affine;
  for (const Iterator i : what.merged) {
    part.terms[i] = form.affine.Coefficient(i);
    rest.terms.erase(i);
  }
  if (rest.terms.empty()) {
    part.constant = rest.constant;
    rest.constant = 0;
  }
  const Range range = RangeOf(part, old.extents);
  int64_t low = CeilDiv(range.low, form.divisor), high = FloorDiv(range.high, form.divisor);
  if (rest.terms.empty() && !what.relaxed) {
    low = std::max<int64_t>(low, 0);
    high = std::min(high,
                    program.TensorShape(staging.inner.factors[what.factor].tensor)[what.dim] - 1);
  }
  const Iterator merged = staging.stage.NewIterator(high - low + 1);
  staging.dims.push_back(merged);
  staging.reading.index.push_back({part + Affine::Constant(-low * form.divisor), form.divisor});
  form = {rest + Affine::Of(merged, 1, low), 1};
}

/// Batch, then what leads in the moving factor, the other factor's own, and the rest of the moving
/// factor's.
std::vector<Iterator> MatMulOrder(const Staging& staging, size_t moving) {
  const Factor& x = staging.inner.factors[moving];
  const Factor& w = staging.inner.factors[1 - moving];
  std::vector<Iterator> batch, lead, others, rest;
  bool leading = true;
  const auto is_dim = [&](Iterator i) {
    return std::find(staging.dims.begin(), staging.dims.end(), i) != staging.dims.end();
  };
  std::vector<Iterator> in_x;
  for (const IndexForm& form : x.index) {
    for (const auto& [i, coefficient] : form.affine.terms) {
      if (!is_dim(i)) leading = false;
      if (is_dim(i) && std::find(in_x.begin(), in_x.end(), i) == in_x.end()) {
        in_x.push_back(i);
        (Uses(w, i) ? batch : leading ? lead : rest).push_back(i);
      }
    }
  }
  for (const Iterator i : staging.dims) {
    if (!Uses(x, i)) others.push_back(i);
  }
  // Leading iterators are a batch of the product only where others of the same factor follow.
  if (rest.empty()) std::swap(lead, rest);
  std::vector<Iterator> order = batch;
  for (const auto* part : {&lead, &others, &rest})
    order.insert(order.end(), part->begin(), part->end());
  return order;
}

bool TooLarge(const Program& program, const Staging& staging, const IndexExpression& old) {
  double made = 1, known = static_cast<double>(NumElements(old.OutputShape()));
  for (const Iterator i : staging.dims) made *= static_cast<double>(staging.stage.extent(i));
  for (const Factor& factor : staging.inner.factors)
    known += static_cast<double>(NumElements(program.TensorShape(factor.tensor)));
  return made > kMostGrowth * known;
}

/// Iterators that no replacement hides: those of forms, or parts of forms, that are kept.
std::set<Iterator> Visible(const IndexTerm& term, const std::vector<Position>& replacements) {
  std::set<Iterator> visible;
  for (size_t f = 0; f < term.factors.size(); ++f) {
    for (size_t d = 0; d < term.factors[f].index.size(); ++d) {
      const auto what =
          std::find_if(replacements.begin(), replacements.end(),
                       [&](const Position& r) { return r.factor == f && r.dim == d; });
      for (const auto& [i, coefficient] : term.factors[f].index[d].affine.terms) {
        if (what == replacements.end() || what->merged.count(i) == 0) visible.insert(i);
      }
    }
  }
  return visible;
}

void StageFactors(const Program& program, size_t t, const std::vector<Position>& replacements,
                  std::vector<Derived>& derived) {
  const IndexExpression& old = program.stages.back();
  const IndexTerm& term = old.terms[t];
  std::set<Iterator> hidden, visible = Visible(term, replacements);
  for (const Position& what : replacements) hidden.insert(what.merged.begin(), what.merged.end());
  Staging staging;
  staging.stage.extents = old.extents;
  staging.inner = term;
  staging.inner.sums.clear();
  staging.reading.tensor = program.StageTensor(program.stages.size() - 1);
  IndexTerm outer;
  for (const Iterator sum : term.sums) {
    (visible.count(sum) > 0 && hidden.count(sum) == 0 ? staging.inner.sums : outer.sums)
        .push_back(sum);
  }
  if (staging.inner.sums.empty()) return;
  for (const Iterator i : visible) {
    if (std::find(staging.inner.sums.begin(), staging.inner.sums.end(), i) !=
        staging.inner.sums.end())
      continue;
    staging.dims.push_back(i);
    staging.reading.index.push_back({Affine::Of(i), 1});
  }
  for (const Position& what : replacements) Merge(program, old, what, staging);
  const bool empty = std::any_of(staging.dims.begin(), staging.dims.end(),
                                 [&](Iterator i) { return staging.stage.extent(i) < 1; });
  if (empty || staging.dims.size() > static_cast<size_t>(kMaxRank) ||
      TooLarge(program, staging, old))
    return;
  Factor reading{staging.reading.tensor, {}};
  for (const Iterator i : MatMulOrder(staging, replacements[0].factor)) {
    const size_t at = static_cast<size_t>(std::find(staging.dims.begin(), staging.dims.end(), i) -
                                          staging.dims.begin());
    reading.index.push_back(staging.reading.index[at]);
    staging.stage.outputs.push_back({{i}, 0, staging.stage.extent(i)});
  }
  staging.stage.terms = {staging.inner};
  outer.factors = {reading};
  Derived result{Cat("stage", replacements[0].relaxed ? " relaxed" : ""), program};
  result.program.stages.insert(result.program.stages.end() - 1, staging.stage);
  result.program.stages.back().terms[t] = outer;
  derived.push_back(std::move(result));
}

/// Positions of a split dimension (3*u + v with v < 3) move nowhere: they are one iterator by
/// another name.
bool IsSplit(const IndexForm& form, const Extents& extents) {
  int64_t least = 0;  // coefficient below which the iterators seen so far stay
  std::vector<std::pair<int64_t, Iterator>> steps;
  for (const auto& [i, coefficient] : form.affine.terms) steps.emplace_back(coefficient, i);
  std::sort(steps.begin(), steps.end());
  for (const auto& [coefficient, i] : steps) {
    if (coefficient <= least) return false;
    least += coefficient * (extents[static_cast<size_t>(i)] - 1);
  }
  return form.divisor == 1;
}

/// The iterators of smallest coefficient, where they are several and not all.
std::set<Iterator> InnerPart(const IndexForm& form) {
  std::set<Iterator> inner;
  for (const auto& [i, coefficient] : form.affine.terms) {
    if (coefficient == 1) inner.insert(i);
  }
  return inner.size() > 1 && inner.size() < form.affine.terms.size() && form.divisor == 1
             ? inner
             : std::set<Iterator>{};
}

/// Choices of what to merge: forms that move, all composite forms, those that move over all their
/// positions, and the inner parts of those that move.
struct Choices {
  std::vector<Position> moving, whole, relaxed, part;
};

Choices ChoicesFor(const IndexExpression& stage, const IndexTerm& term) {
  Choices choices;
  for (size_t f = 0; f < 2; ++f) {
    for (size_t d = 0; d < term.factors[f].index.size(); ++d) {
      const IndexForm& form = term.factors[f].index[d];
      if (!IsComposite(form)) continue;
      std::set<Iterator> all;
      for (const auto& [i, coefficient] : form.affine.terms) all.insert(i);
      choices.whole.push_back({f, d, all, false});
      if (IsSplit(form, stage.extents)) continue;
      choices.moving.push_back({f, d, all, false});
      choices.relaxed.push_back({f, d, all, true});
      const std::set<Iterator> inner = InnerPart(form);
      if (!inner.empty()) choices.part.push_back({f, d, inner, true});
    }
  }
  return choices;
}

}  // namespace

void StageProducts(const Program& program, std::vector<Derived>& derived) {
  const IndexExpression& last = program.stages.back();
  for (size_t t = 0; t < last.terms.size(); ++t) {
    if (last.terms[t].factors.size() != 2) continue;
    const Choices choices = ChoicesFor(last, last.terms[t]);
    if (choices.moving.empty()) continue;
    for (const auto* set : {&choices.moving, &choices.whole, &choices.relaxed}) {
      if (set == &choices.whole && choices.whole.size() == choices.moving.size()) continue;
      StageFactors(program, t, *set, derived);
    }
    if (choices.part.size() == choices.moving.size())
      StageFactors(program, t, choices.part, derived);
  }
}

}  // namespace mendel
