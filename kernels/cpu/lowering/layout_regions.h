// Regions of nodes that share a layout without conversions, and the nodes that are charged for the
// conversions elsewhere.
#ifndef MENDEL_KERNELS_CPU_LOWERING_LAYOUT_REGIONS_H_
#define MENDEL_KERNELS_CPU_LOWERING_LAYOUT_REGIONS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernels/cpu/program.h"

namespace mendel::cpu {

/// Backend::KindRegions of this backend. A region contains convolutions that read one value, or one
/// another's results directly or through operators that follow their operand's layout. The image
/// keeps its extents within a region. The gain of a layout depends on the whole region: each stage
/// of a network chooses, and a conversion between two stages is paid for once. A single convolution
/// is no region: its own time says as much.
std::vector<std::vector<int32_t>> LayoutRegions(const Graph& graph, const std::set<int32_t>& nodes);

/// Fills Step::requested_by of the conversions among `steps`, in which the lowering left the node
/// whose value is converted. Between two nodes that follow each other's layout, the nodes with an
/// algorithm of their own are charged, on either side. A reader that accepts one layout only,
/// whatever the algorithms, is charged itself, in the default plan too.
void ChargeConversions(const Graph& graph, const std::map<int32_t, std::string>& algorithms,
                       std::vector<ProgramStep>& steps);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_LAYOUT_REGIONS_H_
