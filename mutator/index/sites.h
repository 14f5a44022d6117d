// The sites of a graph in words: which operators the algebra reads as one sum of products, and why
// it reads no further.
#ifndef MENDEL_MUTATOR_INDEX_SITES_H_
#define MENDEL_MUTATOR_INDEX_SITES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace mendel {

/// A value at which a site ends.
struct SiteEnd {
  ValueId value;
  std::string reason;  ///< "an input", "Relu has no translation", ..
};

struct SiteReport {
  std::vector<int32_t> nodes;  ///< ascending
  std::vector<SiteEnd> ends;   ///< without weights
};

/// The largest sites, by their last nodes; none that lies within another one.
std::vector<SiteReport> DescribeSites(const Graph& graph);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_SITES_H_
