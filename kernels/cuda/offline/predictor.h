// What a graph should cost on a GPU that is not here: a roofline for every launch of the backend.
#ifndef MENDEL_KERNELS_CUDA_OFFLINE_PREDICTOR_H_
#define MENDEL_KERNELS_CUDA_OFFLINE_PREDICTOR_H_

#include <vector>

#include "graph/graph.h"
#include "kernels/cuda/emit/roofline.h"

namespace mendel::cuda {

/// Goes with plans and stored searches: another number means other predictions.
inline constexpr int kPredictorVersion = 2;

/// Seconds by node id. A launch (fusion/grouping.h) counts for the node whose value it stores: the larger of its arithmetic at the
/// peak of its precision and of its traffic at full bandwidth, and kLaunchSeconds. Traffic is what the launch reads of values
/// outside of it, each once, and its result. Corrections that emitted kernels compute (emit/correction_plan.h) count for their
/// Patch: the kernels' own roofline (emit/roofline.h), and a copy where they are not in place. Nodes that no kernel computes are
/// launches of their own. Predictions rank programs; kernels that miss their roofline are slower than this.
std::vector<double> PredictSeconds(const Graph& graph, const GpuModel& gpu);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_OFFLINE_PREDICTOR_H_
