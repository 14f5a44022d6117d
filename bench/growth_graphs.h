// Networks of repeated parts, for measuring how the search's time grows.
#ifndef MENDEL_BENCH_GROWTH_GRAPHS_H_
#define MENDEL_BENCH_GROWTH_GRAPHS_H_

#include "graph/graph.h"

namespace mendel {

/// `blocks` residual blocks (two convolutions, one of them dilated, ReLU) of equal shapes and
/// different weights.
Graph RepeatedBlocks(int blocks);
/// The same with another number of channels inside each block, so that no two are alike.
Graph DifferentBlocks(int blocks);
/// An encoder of `layers` layers: attention of `width` / 32 heads over 32 tokens, and two products
/// with GELU between them.
Graph BertLike(int layers, int64_t width);

}  // namespace mendel

#endif  // MENDEL_BENCH_GROWTH_GRAPHS_H_
