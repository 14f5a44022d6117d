// Seconds of a program's steps as costs of its nodes.
#ifndef MENDEL_OPTIMIZER_NODE_SECONDS_H_
#define MENDEL_OPTIMIZER_NODE_SECONDS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/backend.h"

namespace mendel {

/// By node, `nodes` of them: a step's `seconds` count for its first node, a conversion's in equal shares for the steps that ask for
/// it (Step::asked_by). So the cost of a node has in it what its layout costs between the neighbours that it ran with. A conversion
/// that nothing asks for, of a graph output, counts for no node.
std::vector<double> SecondsByNode(std::span<const Step> steps, std::span<const double> seconds, size_t nodes);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_NODE_SECONDS_H_
