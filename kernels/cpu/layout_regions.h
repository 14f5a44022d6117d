// Where values pass from one node to the next as they lie, and who pays where they do not.
#ifndef MENDEL_KERNELS_CPU_LAYOUT_REGIONS_H_
#define MENDEL_KERNELS_CPU_LAYOUT_REGIONS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernels/cpu/program.h"

namespace mendel::cpu {

/// Backend::KindRegions of this backend: convolutions that read what another one yields, directly or through operators that follow
/// the layout of what they read, or that read one value, as long as the image keeps its extents: what a layout gains depends on
/// them, so that each stage of a network chooses, and a conversion between two stages is paid for once. Of one convolution alone
/// its own time tells as much.
std::vector<std::vector<int32_t>> LayoutRegions(const Graph& graph, const std::set<int32_t>& nodes);

/// Fills Step::asked_by of the conversions among `steps`, which the lowering left with the node whose value is converted. Between
/// two that would follow each other's layout it is the nodes with an algorithm of their own, on either side; whoever reads a value
/// in one layout only, whatever the algorithms, asks himself, and pays beside the default, too.
void ChargeConversions(const Graph& graph, const std::map<int32_t, std::string>& algorithms, std::vector<ProgramStep>& steps);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LAYOUT_REGIONS_H_
