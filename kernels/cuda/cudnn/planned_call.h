// A planned operation graph of cuDNN as a step of a program.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_PLANNED_CALL_H_
#define MENDEL_KERNELS_CUDA_CUDNN_PLANNED_CALL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/backend/library_call.h"
#include "kernels/cuda/cudnn/engine.h"
#include "kernels/cuda/cudnn/table.h"

namespace mendel::cuda {

/// Tensors of a plan, by id, that are no operands and no results.
struct InnerTensors {
  std::map<int64_t, float> numbers = {};    ///< f32 tensors of one element, given by value
  std::map<int64_t, int64_t> written = {};  ///< bytes of those that are written and never read
};

/// The call of `engine`, which was planned for the device with the properties `device_json`.
/// `kind`: what its name begins with. `tensors`: ids of what the pointers of its site are, the
/// result last. `inner`: what else it has. Loading fails with FailedPrecondition where cuDNN does
/// not make the plan again. `cudnn` outlives the result.
std::shared_ptr<const LibraryCall> MakePlannedCall(const Cudnn& cudnn, std::string_view kind,
                                                   CudnnEngine engine, std::vector<int64_t> tensors,
                                                   std::string device_json,
                                                   InnerTensors inner = {});

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_PLANNED_CALL_H_
