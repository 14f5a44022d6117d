// Random rewrites that keep a program's meaning, for tests that the verifier accepts what is equal.
#ifndef MENDEL_TESTS_LEGAL_REWRITES_H_
#define MENDEL_TESTS_LEGAL_REWRITES_H_

#include <map>
#include <string>

#include "base/random.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// `graph` after about `count` random rewrites at random nodes - operands commuted, sums and
/// products associated anew, values split and merged again, tiles computed apart, transposes,
/// reshapes, slices and concatenations that undo each other, identities of arithmetic, weights
/// expressed by others - then renamed and reordered. kExact allows new stored weights. `used`, when
/// given, counts the rewrites by name.
Graph RandomLegalRewrite(Rng& rng, const Graph& graph, int count, WeightMode weights,
                         std::map<std::string, int>* used = nullptr);

/// `graph` with its convolutions and matrix products computed another way with as many
/// multiply-adds: split along the summed dimension or, where that is not possible, along an output
/// one. All, or only the `only`-th. `changed` counts them.
Graph WithOtherProducts(Rng& rng, const Graph& graph, int* changed, int only = -1);

}  // namespace mendel

#endif  // MENDEL_TESTS_LEGAL_REWRITES_H_
