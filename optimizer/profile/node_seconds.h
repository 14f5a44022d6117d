// Seconds of a program's steps as costs of its nodes.
#ifndef MENDEL_OPTIMIZER_PROFILE_NODE_SECONDS_H_
#define MENDEL_OPTIMIZER_PROFILE_NODE_SECONDS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/backend.h"

namespace mendel {

/// Returns seconds by node, for `nodes` nodes. The seconds of a step count for its first node.
/// Those of a conversion count in equal shares for the steps that request it (Step::requested_by),
/// so the cost of a node includes the conversions between it and its neighbors. A conversion of a
/// graph output, which no step requests, counts for no node.
std::vector<double> SecondsByNode(std::span<const Step> steps, std::span<const double> seconds,
                                  size_t nodes);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILE_NODE_SECONDS_H_
