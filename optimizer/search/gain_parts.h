// The parts of a plan's gain: what is lost when its mutants, its algorithms or its layouts are left
// out.
#ifndef MENDEL_OPTIMIZER_SEARCH_GAIN_PARTS_H_
#define MENDEL_OPTIMIZER_SEARCH_GAIN_PARTS_H_

#include <cstdint>
#include <vector>

#include "mendel/plan.pb.h"
#include "optimizer/profile/profiler.h"

namespace mendel {

/// A part, and the plan without it.
struct LeftOut {
  plan::GainPart part;  ///< not measured yet
  Variant variant;
};

/// The number of kinds that `best` contains.
int CountParts(const Variant& best, int64_t mutants);

/// The kinds that `best` contains, each left out. The plan without its `mutants` is the baseline
/// with the algorithms of the nodes that have the same name, operator and choice there.
std::vector<LeftOut> LeaveOut(const Backend& backend, Numerics numerics, const Variant& baseline,
                              const Variant& best, int64_t mutants);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_SEARCH_GAIN_PARTS_H_
