// From index expressions to graphs: terms are matched with convolutions, matrix products, sums of shifted views, and views.
//
//   matrix product  the iterators of two factors by where they occur: in both and in the result (batch), in one and in the result
//                   (rows, columns), in both only (the inner dimension)
//   convolution     one factor holds windows s*p + d*k, p of the result, k of the other factor; the remaining iterators are batch,
//                   channels and groups
//   offset-add      one factor whose reductions stand beside other iterators: one shifted view for each value
#ifndef MENDEL_MUTATOR_INDEX_REALISE_H_
#define MENDEL_MUTATOR_INDEX_REALISE_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/emitter.h"
#include "graph/graph.h"
#include "mutator/index/expression.h"
#include "mutator/index/translate.h"
#include "mutator/index/view.h"

namespace mendel {

struct RealiseOptions {
  bool convolutions = true;  ///< false: products become matrix products even where a convolution fits
  int64_t most_shifts = 64;  ///< views added up for one term
};

/// The site's subprogram (rewrite.h: Extract of its nodes), computed as `program` says, which has the site's leaves. The leaves of
/// `site` are values of `subprogram`. Unimplemented when some term matches no operator.
absl::StatusOr<Graph> RealiseProgram(const Graph& subprogram, const IndexSite& site, const Program& program,
                                     const RealiseOptions& options);

/// Two factors at a term's stage, as values: what the matchers get.
struct Product {
  const IndexTerm& term;
  const Extents& extents;
  std::vector<Iterator> order;    ///< of the result
  std::vector<ValueId> operands;  ///< tensors of the factors
};

/// The product by a Conv node, or by a MatMul node; nullopt when it has not that form (nothing has been emitted then).
std::optional<IndexedValue> EmitConv(Emitter& e, const Product& product);
std::optional<IndexedValue> EmitMatMul(Emitter& e, const Product& product);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_REALISE_H_
