// Makes random programs that crop, pick, pad and repeat parts of their values.
#ifndef MENDEL_MUTATOR_REGIONS_RANDOM_PROGRAM_H_
#define MENDEL_MUTATOR_REGIONS_RANDOM_PROGRAM_H_

#include <cstdint>

#include "base/random.h"
#include "graph/graph.h"

namespace mendel {

/// A small random program whose inputs are repeated or padded and whose outputs are cropped,
/// flipped, gathered or averaged. `pruned`: some constants are zero at positions of an axis.
Graph RandomRegionsProgram(Rng& rng, bool pruned = false);

/// Programs of one test: 400, or the number in environment variable MENDEL_REGION_PROGRAMS.
uint64_t RegionPrograms();

}  // namespace mendel

#endif  // MENDEL_MUTATOR_REGIONS_RANDOM_PROGRAM_H_
