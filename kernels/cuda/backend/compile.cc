#include "kernels/cuda/backend/compile.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/backend/executable.h"

namespace mendel::cuda {

absl::StatusOr<std::unique_ptr<Executable>> CompileGraph(const Driver& driver, const Graph& graph,
                                                         const ProgramOptions& options,
                                                         const ImageOf& image) {
  MENDEL_ASSIGN_OR_RETURN(std::vector<DeviceProgram> orders, LowerInOrders(graph, options));
  return MakeFastest(driver, std::move(orders), image);
}

}  // namespace mendel::cuda
