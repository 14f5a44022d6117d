// Masked softmax: scores of -inf leave no trace after a softmax.
//
// Attention masks keys by adding a constant of -inf to their scores, or by choosing it. Over the
// extended reals exp(x - inf) = 0 for every finite x, so that
//
//     softmax(x + m) = exp(x + m') 1(m) / sum(exp(x + m') 1(m)),
//
// where 1(m) is 0 where m is -inf and 1 elsewhere, and m' is m with 0 in place of -inf. The right
// side is finite arithmetic, in which a program that leaves the masked keys out computes the same
// sum. A row all of whose scores are masked is NaN and stays as it is.
#ifndef MENDEL_VERIFIER_AXIOMS_MASKED_SOFTMAX_H_
#define MENDEL_VERIFIER_AXIOMS_MASKED_SOFTMAX_H_

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// `graph` with every Softmax over scores that constants mask replaced by the right side above.
/// `count`, when given, is increased by their number. In symbolic mode a symbol counts as a mask
/// only if it consists of 0 and -inf. Where a program is defined must be decided of the graph as
/// given.
absl::StatusOr<Graph> WithoutMaskedScores(const Graph& graph, WeightMode weights,
                                          int* count = nullptr);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_AXIOMS_MASKED_SOFTMAX_H_
