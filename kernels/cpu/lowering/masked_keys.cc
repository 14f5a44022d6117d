#include "kernels/cpu/lowering/masked_keys.h"

#include <algorithm>
#include <cmath>

namespace mendel::cpu {
namespace {

/// A key is hidden when its summands come to at most -limit, and plainly visible when they come to
/// at least -limit / 2.
constexpr float kSmallestLimit = 1000.0f;

/// Largest magnitude of a matrix; NaN when it contains one.
float LargestMagnitude(const float* from, const AttentionStrides& strides, int64_t rows,
                       int64_t columns) {
  const bool by_rows = strides.column <= strides.row;
  const int64_t outer = by_rows ? rows : columns, inner = by_rows ? columns : rows;
  const int64_t outer_step = by_rows ? strides.row : strides.column,
                step = by_rows ? strides.column : strides.row;
  float largest = 0;
  for (int64_t i = 0; i < outer; ++i) {
    const float* x = from + i * outer_step;
    for (int64_t j = 0; j < inner; ++j) {
      const float magnitude = std::fabs(x[j * step]);
      if (!(magnitude <= largest)) largest = magnitude;
      if (std::isnan(largest)) return largest;
    }
  }
  return largest;
}

/// Returns the sum of the terms at `key`, which is what a score of zero becomes.
float Offset(const AttentionPlan& plan, const std::array<ScoreTerm, kMaxScoreTerms>& terms,
             int64_t key) {
  float offset = 0;
  for (size_t k = 0; k < plan.terms.size(); ++k) {
    const ScoreTerm& term = terms[k];
    if (term.summand != nullptr) {
      offset += term.summand[key * term.step];
    } else if ((term.condition[key * term.step] != 0) != term.kept) {
      offset = term.other;
    }
  }
  return offset;
}

/// Widens `range` by the keys that one query sees; false when it sees no key plainly.
bool Widen(const AttentionPlan& plan, const AttentionOperands& operands, int64_t head,
           int64_t query, float limit, KeyRange& range) {
  const std::array<ScoreTerm, kMaxScoreTerms> terms = TermsOfRow(plan, operands, head, query, 0);
  const auto hidden = [&](int64_t key) { return Offset(plan, terms, key) <= -limit; };
  int64_t first = 0, last = plan.keys - 1;
  while (last >= 0 && hidden(last)) --last;
  if (last < 0) return false;
  while (hidden(first)) ++first;
  range = {std::min(range.begin, first), std::max(range.end, last + 1)};
  return Offset(plan, terms, last) >= -limit / 2 || Offset(plan, terms, first) >= -limit / 2;
}

}  // namespace

KeyRange VisibleKeys(const AttentionPlan& plan, const AttentionOperands& operands, int64_t head,
                     int64_t begin, int64_t end, HeadSizes& sizes) {
  const KeyRange all{0, plan.keys};
  const int64_t panel = plan.isa->panel_vectors * plan.isa->lanes;
  if (plan.terms.empty() || plan.keys <= panel) return all;
  // Cheap necessary condition: without it no matrix is read.
  const std::array<ScoreTerm, kMaxScoreTerms> first = TermsOfRow(plan, operands, head, begin, 0);
  const auto may_hide = [&](int64_t key) { return Offset(plan, first, key) <= -kSmallestLimit; };
  if (!may_hide(0) && !may_hide(plan.keys - 1)) return all;
  if (!sizes.keys.has_value()) {
    sizes.keys = LargestMagnitude(operands.k + HeadOffset(plan, plan.k, head), plan.k, plan.depth,
                                  plan.keys);
    sizes.values = LargestMagnitude(operands.v + HeadOffset(plan, plan.v, head), plan.v, plan.keys,
                                    plan.width);
  }
  const float* q = operands.q + HeadOffset(plan, plan.q, head) + begin * plan.q.row;
  const float queries = LargestMagnitude(q, plan.q, end - begin, plan.depth);
  const float largest_score =
      std::fabs(plan.scale) * static_cast<float>(plan.depth) * queries * *sizes.keys;
  const float limit = kSmallestLimit + 4 * largest_score;
  if (!(queries * *sizes.keys * static_cast<float>(plan.depth) <= 1e36f) || !(limit <= 1e36f) ||
      !std::isfinite(*sizes.values))
    return all;
  // Hidden scores are at most largest_score - limit, some visible one at least -largest_score -
  // limit / 2: more than 104 apart.
  KeyRange range{plan.keys, 0};
  for (int64_t query = begin; query < end; ++query) {
    if (!Widen(plan, operands, head, query, limit, range)) return all;
  }
  return {range.begin / panel * panel,
          std::min(plan.keys, (range.end + panel - 1) / panel * panel)};
}

}  // namespace mendel::cpu
