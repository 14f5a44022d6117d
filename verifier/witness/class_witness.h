// A witness by the classes of values (regions/exact_classes.h): what enclosures alone do not pass,
// such as a comparison of NaN, is decided there.
#ifndef MENDEL_VERIFIER_WITNESS_CLASS_WITNESS_H_
#define MENDEL_VERIFIER_WITNESS_CLASS_WITNESS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "graph/evaluate.h"
#include "graph/graph.h"
#include "verifier/witness/witness.h"

namespace mendel {

/// Element `flat` of the query's box on these inputs of a joint program: a number on one side and
/// certainly none on the other, or two numbers that certainly differ. Nothing where that is not
/// known or costs too much.
absl::StatusOr<std::optional<Witness>> WitnessByClasses(const Graph& joint,
                                                        const WitnessQuery& query,
                                                        const std::vector<HostValue>& inputs,
                                                        int64_t flat, const Deadline& deadline);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WITNESS_CLASS_WITNESS_H_
