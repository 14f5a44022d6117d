#include "kernels/cuda/backend/compile.h"

#include <utility>

#include "base/status.h"
#include "kernels/cuda/backend/executable.h"
#include "kernels/cuda/backend/launch_order.h"

namespace mendel::cuda {

absl::StatusOr<std::unique_ptr<Executable>> CompileGraph(const Driver& driver, const Graph& graph, const ProgramOptions& options,
                                                         const ImageOf& image) {
  MENDEL_ASSIGN_OR_RETURN(DeviceProgram program, LowerToDevice(graph, options));
  auto executable = MakeExecutable(driver, std::move(program), image);
  if (options.order != LaunchOrder::kFaster || executable.status().code() != absl::StatusCode::kResourceExhausted)
    return executable;
  ProgramOptions smallest = options;
  smallest.order = LaunchOrder::kChain;
  smallest.apart_up_to = 0;
  MENDEL_ASSIGN_OR_RETURN(DeviceProgram chain, LowerToDevice(graph, smallest));
  if (!chain.launches.empty()) chain.launches[0].info.kernel += ChainTold(executable.status());
  return MakeExecutable(driver, std::move(chain), image);
}

}  // namespace mendel::cuda
