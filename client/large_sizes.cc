#include "client/large_sizes.h"

#include <algorithm>
#include <optional>

#include "base/status.h"
#include "graph/rewrite.h"
#include "verifier/constants.h"
#include "verifier/witness/first_look.h"

namespace mendel {
namespace {

constexpr double kMostFlops = 1e9;
constexpr double kMostElements = 0x1p24;
/// For the enclosures of a witness.
constexpr double kSeconds = 20;

double ElementsOf(const Graph& graph) {
  double elements = 0;
  for (const Node& node : graph.nodes()) {
    for (const TensorType& type : node.outputs) elements += static_cast<double>(NumElements(type));
  }
  return elements;
}

}  // namespace

bool IsCheapToEvaluate(const Pair& pair) {
  return TotalFlops(pair.a) + TotalFlops(pair.b) <= kMostFlops &&
         ElementsOf(pair.a) + ElementsOf(pair.b) <= kMostElements;
}

absl::StatusOr<bool> DifferAtOnce(const Pair& pair, bool folded, WeightMode weights, uint64_t seed,
                                  const Deadline& deadline) {
  Graph b = pair.b;
  if (weights == WeightMode::kSymbolic) {
    MENDEL_ASSIGN_OR_RETURN(b, WithWeightsOf(pair.a, pair.b));
  }
  MENDEL_ASSIGN_OR_RETURN(const FirstLook look, LookForDifference(pair.a, b, seed));
  if (folded && !look.far_apart) return false;
  WitnessOptions options;
  options.seed = seed;
  options.deadline = Deadline::After(std::min(kSeconds, deadline.SecondsLeft() / 2));
  MENDEL_ASSIGN_OR_RETURN(const std::optional<Witness> witness,
                          WitnessOfLook(pair.a, b, look, options));
  return witness.has_value();
}

}  // namespace mendel
