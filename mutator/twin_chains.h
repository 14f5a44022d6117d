// Twin chains: the same operators with the same weights applied to two inputs.
#ifndef MENDEL_MUTATOR_TWIN_CHAINS_H_
#define MENDEL_MUTATOR_TWIN_CHAINS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/emitter.h"
#include "graph/graph.h"

namespace mendel {

struct TwinChains {
  std::map<int32_t, int32_t> pairs;                 ///< nodes of the first chain, of the second
  std::vector<std::pair<ValueId, ValueId>> inputs;  ///< values that both read, position by position
  int64_t products = 0;                             ///< convolutions and matrix products, a chain
};

/// True when the node computes every row of dimension 0 by itself and alike.
bool IsIndependentOfBatch(const Graph& graph, int32_t node);

/// The largest twin chains that end with `first` and `second`; nullopt when the two nodes differ,
/// or one chain depends on the other.
std::optional<TwinChains> TwinsEndingAt(const Graph& graph, int32_t first, int32_t second,
                                        size_t max_pairs);

/// Nodes of earlier chains that `node` has for twins: a few, the nearest first.
std::vector<int32_t> PartnersOf(const Graph& graph, int32_t node, int depth);

/// One chain of `twins` over both inputs, one behind the other along dimension 0; `inputs`:
/// Emitter::InputsOf(graph). Returns the value of the node that `first` becomes.
ValueId EmitStacked(Emitter& e, const Graph& graph, const TwinChains& twins, int32_t first,
                    const std::vector<ValueId>& inputs);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_TWIN_CHAINS_H_
