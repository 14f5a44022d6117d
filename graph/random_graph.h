// Random small programs and random changes to them, for the property tests of the verifier, the
// corrector and restriction.
#ifndef MENDEL_GRAPH_RANDOM_GRAPH_H_
#define MENDEL_GRAPH_RANDOM_GRAPH_H_

#include <vector>

#include "base/random.h"
#include "graph/evaluate.h"
#include "graph/graph.h"

namespace mendel {

/// One program of up to `steps` operators over one or two small inputs: convolutions and pools with
/// strides, dilations, pads and groups, views, slices and flips, sums and products of shifted
/// views, concatenations, matrix products, literals that vary.
Graph RandomGraph(Rng& rng, int steps);

/// `graph` with one value changed for all its readers, usually in some elements only: a shifted,
/// flipped or scaled part, a border overwritten, a convolution over images merged along a
/// dimension. Now and then the change is none. Same inputs and types.
Graph RandomMutant(Rng& rng, const Graph& graph);

/// Values for the graph's inputs: standard normal for floats, small integers for the others.
std::vector<HostValue> RandomInputs(Rng& rng, const Graph& graph);

}  // namespace mendel

#endif  // MENDEL_GRAPH_RANDOM_GRAPH_H_
