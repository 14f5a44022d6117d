// The switch for what no measurement on a GPU supports yet: horizontal fusion, orders of launches,
// chains of products in one kernel without tensor cores, asynchronous copies.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_EXPERIMENTS_H_
#define MENDEL_KERNELS_CUDA_BACKEND_EXPERIMENTS_H_

#include "absl/status/statusor.h"
#include "kernels/cuda/backend/program.h"

namespace mendel::cuda {

/// The user's setting, MENDEL_CUDA_EXPERIMENTS in the environment. A plan that names an experiment
/// runs under any setting.
enum class Experiments {
  kOff,       ///< "off" or unset: none is offered, and launches follow the plan's order
  kMeasured,  ///< "measured": the search offers all of them, and a load measures orders
  kOn,        ///< "on": also replays branches always, whatever memory they take
};

/// InvalidArgument names any other value.
absl::StatusOr<Experiments> ExperimentsHere();
/// True under `measured` and `on`.
bool OffersExperiments();

/// Fields are as in ProgramOptions.
struct OrderSetting {
  LaunchOrder order = LaunchOrder::kChain;
  double apart_up_to = 0;
};
OrderSetting OrdersOf(Experiments experiments);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_EXPERIMENTS_H_
