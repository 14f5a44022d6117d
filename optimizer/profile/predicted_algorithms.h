// Algorithms by predicted seconds: a search that runs nothing.
#ifndef MENDEL_OPTIMIZER_PROFILE_PREDICTED_ALGORITHMS_H_
#define MENDEL_OPTIMIZER_PROFILE_PREDICTED_ALGORITHMS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"

namespace mendel {

/// The name of the chosen algorithm, by node.
using Algorithms = std::map<int32_t, std::string>;
/// Names of algorithms by node, the backend's favorite first; no entry for nodes without a choice.
using AlgorithmOffers = std::map<int32_t, std::vector<std::string>>;

/// The choice of least seconds that is found by giving one algorithm to all nodes that have it
/// (neighbors may read each other's layouts, so that one alone would pay for conversions), then by
/// changing one of `like` at a time, whose nodes keep the same choice, until nothing gains. `known`
/// stays as it is. A choice that `seconds` answers with an error is none; the error of `known`
/// alone is returned. The backend's default wins ties, then what is offered first. `cut` becomes
/// true when the deadline ended the search.
absl::StatusOr<Algorithms> CheapestAlgorithms(
    const std::vector<AlgorithmOffers>& like, const Algorithms& known,
    const std::function<absl::StatusOr<double>(const Algorithms&)>& seconds, Deadline deadline,
    bool& cut);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILE_PREDICTED_ALGORITHMS_H_
