// The functions of one compiled part, as ONNX Runtime calls them.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_COMPUTE_H_
#define MENDEL_CLIENT_ONNXRUNTIME_COMPUTE_H_

#include <memory>
#include <vector>

#include "client/onnxruntime/abi.h"
#include "client/onnxruntime/part_runner.h"
#include "client/onnxruntime/runtime_api.h"

namespace mendel::ort {

/// Positions of the runner's inputs and outputs among those of the fused node.
struct Wiring {
  std::vector<size_t> inputs, outputs;
};

/// `api` must outlive it. Freed by FreeCompute. With `park`, the other threads of the session's
/// pool sleep while the part runs.
ComputeInfo* NewCompute(const RuntimeApi& api, std::unique_ptr<PartRunner> runner, Wiring wiring,
                        bool park);
void FreeCompute(ComputeInfo* info);

/// The number of threads that ONNX Runtime gives to the loops of one operator. No member of its
/// interface reports it: a loop whose steps wait for each other counts them.
int CountThreads(const RuntimeApi& api, const KernelContext* context);

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_COMPUTE_H_
