#include "verifier/axioms/rewritten_pair.h"

#include <map>
#include <set>
#include <utility>

#include "base/status.h"
#include "verifier/axioms/axioms.h"
#include "verifier/axioms/masked_softmax.h"

namespace mendel {
namespace {

absl::StatusOr<std::optional<RewrittenPair>> CanonicalBoth(const Graph& f, const Graph& g,
                                                           WeightMode weights) {
  // A plan's literals are what they are: no rounded one stands for its constant anywhere.
  std::set<std::string> outputs;
  for (const Graph* graph : {&f, &g}) {
    for (const GraphOutput& output : graph->outputs()) outputs.insert(output.name);
  }
  std::map<std::string, int> used;
  MENDEL_ASSIGN_OR_RETURN(Graph first, Canonicalize(f, weights, &used, outputs));
  MENDEL_ASSIGN_OR_RETURN(Graph second, Canonicalize(g, weights, &used, outputs));
  if (used.empty()) return std::nullopt;
  RewrittenPair pair{
      std::move(first), std::move(second), {std::string(PairFormName(PairForm::kCanonical))}};
  for (const auto& [name, count] : used) pair.axioms.push_back(name);
  return pair;
}

}  // namespace

std::string_view PairFormName(PairForm form) {
  return form == PairForm::kMaskedSoftmax ? "masked softmax" : "canonical form";
}

absl::StatusOr<std::optional<RewrittenPair>> RewriteBoth(PairForm form, const Graph& f,
                                                         const Graph& g, WeightMode weights) {
  if (form == PairForm::kCanonical) return CanonicalBoth(f, g, weights);
  int count = 0;
  MENDEL_ASSIGN_OR_RETURN(Graph first, WithoutMaskedScores(f, weights, &count));
  MENDEL_ASSIGN_OR_RETURN(Graph second, WithoutMaskedScores(g, weights, &count));
  if (count == 0) return std::nullopt;
  return RewrittenPair{std::move(first), std::move(second), {std::string(PairFormName(form))}};
}

}  // namespace mendel
