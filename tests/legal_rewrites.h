// Random rewrites that keep a program's meaning, for tests that the judge accepts what is equal.
#ifndef MENDEL_TESTS_LEGAL_REWRITES_H_
#define MENDEL_TESTS_LEGAL_REWRITES_H_

#include <map>
#include <string>

#include "base/random.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// `graph` after about `count` random rewrites at random nodes - operands commuted, sums and products associated anew, values split
/// and merged again, tiles computed apart, transposes, reshapes, slices and concatenations that undo each other, identities of
/// arithmetic, weights expressed by others - then renamed and reordered. kExact allows new stored weights. `used`, when given,
/// counts the rewrites by name.
Graph RandomLegalRewrite(Rng& rng, const Graph& graph, int count, WeightMode weights, std::map<std::string, int>* used = nullptr);

}  // namespace mendel

#endif  // MENDEL_TESTS_LEGAL_REWRITES_H_
