// Corrected mutants as whole plans on a driver, for tests.
#ifndef MENDEL_KERNELS_CUDA_TESTING_CORRECTED_PLAN_H_
#define MENDEL_KERNELS_CUDA_TESTING_CORRECTED_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

struct CorrectedPlan {
  std::string description;
  Graph graph;
  DeviceProgram program;
  double tolerance = 0;  ///< of the largest element; 0: equal, as sums of small integers are
};

/// The plan of `graph`, every value an allocation of its own unless `reuse_memory`. The names of
/// its corrections, which are unique in one graph only, get `prefix`, so that one module may hold
/// those of many.
absl::StatusOr<CorrectedPlan> MakeCorrectedPlan(const Graph& graph, const std::string& prefix,
                                                bool reuse_memory);

/// One module of all plans' kernels.
std::string ModuleOf(const std::vector<CorrectedPlan>& plans);

/// Launches whose step begins with `kernel`.
std::vector<const DeviceLaunch*> LaunchesBy(const DeviceProgram& program,
                                            const std::string& kernel);

/// "" when the plan, compiled once and run on inputs of two seeds and the first one again, yields
/// what its graph means at every element of every output.
std::string FailureOf(const Driver& driver, const CorrectedPlan& plan);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_CORRECTED_PLAN_H_
