// The least time that an algorithm can take for a contraction: a roofline (Williams, Waterman and
// Patterson 2009) of its own multiplications and of the weights it has to read.
#ifndef MENDEL_BENCH_ROOFLINE_H_
#define MENDEL_BENCH_ROOFLINE_H_

#include <cstdint>
#include <string>

#include "bench/machine_peak.h"
#include "graph/graph.h"

namespace mendel {

struct Roofline {
  /// Multiplications and their additions, at the peak of `threads` cores.
  double arithmetic_seconds = 0;
  /// Packed weights from memory: a network's weights do not stay in caches from run to run.
  double memory_seconds = 0;
  double Seconds() const {
    return arithmetic_seconds > memory_seconds ? arithmetic_seconds : memory_seconds;
  }
};

/// Derivation. A direct convolution or product multiplies as often as its textbook cost says.
/// Winograd's F(m, k) multiplies m + k - 1 times for m outputs along each dimension of k > 1 taps,
/// where the direct one multiplies m * k times; with stride s the taps are s phases of their own,
/// each a F(m, k_p). The packed weights grow as the multiplications per tile: (m + k - 1) / k along
/// a dimension. Strassen's products are 7 of 8. Transforms, images and outputs are not counted: a
/// layer of one image may find them in a cache. `algorithm`: a name of Backend::Algorithms, or
/// "default". Nodes other than Conv and MatMul: their textbook arithmetic and no memory.
Roofline RooflineOf(const Graph& graph, int32_t node, const std::string& algorithm,
                    const MachinePeak& core, int threads);

}  // namespace mendel

#endif  // MENDEL_BENCH_ROOFLINE_H_
