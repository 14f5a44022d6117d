#include "kernels/cuda/backend/experiments.h"

#include <cstdlib>
#include <limits>
#include <string>

#include "base/status.h"

namespace mendel::cuda {

absl::StatusOr<Experiments> ExperimentsHere() {
  constexpr char kVariable[] = "MENDEL_CUDA_EXPERIMENTS";
  const char* const text = std::getenv(kVariable);
  const std::string value = text == nullptr ? "off" : text;
  if (value == "off") return Experiments::kOff;
  if (value == "measured") return Experiments::kMeasured;
  if (value == "on") return Experiments::kOn;
  return InvalidInput(kVariable, " must be 'off', 'measured' or 'on', not '", value, "'");
}

bool OffersExperiments() {
  const auto experiments = ExperimentsHere();
  return experiments.ok() && *experiments != Experiments::kOff;
}

OrderSetting OrdersOf(Experiments experiments) {
  constexpr double kMostMemory = 1.5;  // of branches, in that of the plan's order
  if (experiments == Experiments::kOff) return {};
  if (experiments == Experiments::kMeasured) return {LaunchOrder::kFaster, kMostMemory};
  return {LaunchOrder::kBranches, std::numeric_limits<double>::infinity()};
}

}  // namespace mendel::cuda
