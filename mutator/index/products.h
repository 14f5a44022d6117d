// Derives cheaper programs of a site by algebra: products multiplied out, like terms added up, and
// every product in its cheapest order.
#ifndef MENDEL_MUTATOR_INDEX_PRODUCTS_H_
#define MENDEL_MUTATOR_INDEX_PRODUCTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mutator/index/realize.h"
#include "mutator/index/translate.h"
#include "mutator/predictor.h"

namespace mendel {

/// One derived program of a site: the site's leaves, then `leaves`.
struct ProductProposal {
  Program program;
  std::vector<IndexLeaf> leaves;  ///< added ones and identities
  RealizeOptions realize;
  double seconds = 0;  ///< predicted
};

struct ProductOptions {
  size_t keep = 2;
  double worst_ratio = 0.97;       ///< predicted seconds over those of the site as it is
  double weight_growth = 1.5;      ///< bytes of weights over those of the site as it is, or ..
  double weight_bytes = 64 << 20;  ///< .. that many more
};

/// Two windows of one image as one, in every term: sum i, j of x[p + i + j] a[i] b[j] is sum t of
/// x[p + t] (sum j of a[t - j] b[j]). `weights`: an entry a leaf.
Program MergeWindows(const Program& program, const std::vector<bool>& weights);

/// The best few programs, cheapest first; different in what runs.
std::vector<ProductProposal> DeriveProducts(const Graph& subprogram, const IndexSite& site,
                                            const Predictor& predictor,
                                            const ProductOptions& options);

absl::StatusOr<Graph> RealizeProposal(const Graph& subprogram, const IndexSite& site,
                                      const ProductProposal& proposal);

/// True when a difference of nearly equal numbers would show: the value reaches a root, a
/// logarithm, a power, a quotient, a comparison or a choice of largest elements.
bool FeedsSensitive(const Graph& graph, int32_t node);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_PRODUCTS_H_
