// Seconds of a program's steps as costs of its nodes.
#ifndef MENDEL_OPTIMIZER_PROFILE_NODE_SECONDS_H_
#define MENDEL_OPTIMIZER_PROFILE_NODE_SECONDS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/backend.h"

namespace mendel {

/// By node, `nodes` of them: a step's `seconds` count for its first node, a conversion's in equal
/// shares for the steps that request it (Step::requested_by). So the cost of a node has in it what
/// its layout costs between the neighbors that it ran with. A conversion that nothing requests, of
/// a graph output, counts for no node.
std::vector<double> SecondsByNode(std::span<const Step> steps, std::span<const double> seconds,
                                  size_t nodes);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILE_NODE_SECONDS_H_
