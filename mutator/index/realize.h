// From index expressions to graphs: terms are matched with convolutions, matrix products, sums of
// shifted views, and views.
//
//   matrix product  the iterators of two factors by where they occur: in both and in the result
//   (batch), in one and in the result
//                   (rows, columns), in both only (the inner dimension)
//   convolution     one factor contains windows s*p + d*k, p of the result, k of the other factor;
//   the remaining iterators are batch,
//                   channels and groups
//   offset-add      one factor whose reductions stand beside other iterators: one shifted view for
//   each value
#ifndef MENDEL_MUTATOR_INDEX_REALIZE_H_
#define MENDEL_MUTATOR_INDEX_REALIZE_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/emitter.h"
#include "graph/graph.h"
#include "mutator/index/expression.h"
#include "mutator/index/translate.h"
#include "mutator/index/view.h"

namespace mendel {

struct RealizeOptions {
  /// False: products become matrix products even where a convolution fits.
  bool convolutions = true;
  int64_t most_shifts = 64;  ///< views added up for one term
  /// Also elementwise products, sums of windows as pools, and biases of convolutions.
  bool elementwise = false;
  bool pointwise = false;  ///< products over channels become 1x1 convolutions
};

/// The site's subprogram (rewrite.h: Extract of its nodes), its last output computed as `program`
/// says, which has the site's leaves. The other outputs stay as they are. The leaves of `site` are
/// values of `subprogram`. Unimplemented when some term matches no operator.
absl::StatusOr<Graph> RealizeProgram(const Graph& subprogram, const IndexSite& site,
                                     const Program& program, const RealizeOptions& options);

/// Two factors at a term's stage, as values: what the matchers get.
struct Product {
  const IndexTerm& term;
  const Extents& extents;
  std::vector<Iterator> order;                 ///< order of the result
  std::vector<ValueId> operands;               ///< tensors of the factors
  std::vector<bool> weights = {false, false};  ///< operands that depend on weights only
  bool pointwise = false;
  /// Added to the product where it varies over channels of the result only; reset when it was.
  std::optional<IndexedValue>* bias = nullptr;
};

/// The product by a Conv node, or by a MatMul node; nullopt when it has not that form (nothing has
/// been emitted then).
std::optional<IndexedValue> EmitConv(Emitter& e, const Product& product);
std::optional<IndexedValue> EmitMatMul(Emitter& e, const Product& product);
/// The product elementwise, summed afterwards; nullopt when a sum moves through one factor only.
std::optional<IndexedValue> EmitMul(Emitter& e, const Product& product);
/// The sum over the windows of one factor by a pool; nullopt when it has not that form.
std::optional<IndexedValue> EmitPool(Emitter& e, const IndexTerm& term, ValueId tensor,
                                     const std::vector<Iterator>& order, const Extents& extents);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_REALIZE_H_
