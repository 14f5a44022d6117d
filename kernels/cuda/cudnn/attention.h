// A cuDNN attention is softmax(scale * q k^T + mask) v as one operation graph of cuDNN, whose
// engines are all compiled at run time.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_ATTENTION_H_
#define MENDEL_KERNELS_CUDA_CUDNN_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/types.h"
#include "kernels/cuda/cudnn/engine.h"
#include "kernels/cuda/cudnn/table.h"

namespace mendel::cuda {

/// A matrix of each head of each batch: [batches, heads, rows, columns] with strides in elements.
struct HeadMatrices {
  Shape shape;
  Shape strides;
};

/// Products of f16 or bf16 with sums in f32, the softmax between them in f32. Its weights are
/// rounded to the format for the second product.
struct CudnnAttention {
  DType dtype = DType::kF16;
  HeadMatrices q, k, v, y;  ///< k: as many rows as v, and as many columns as q
  float scale = 1;
  /// Added to the scaled scores. Extents of 1 are broadcast, but for the keys.
  std::optional<HeadMatrices> mask = std::nullopt;
  DType mask_dtype = DType::kF32;  ///< f32, f16 or bf16

  /// Bytes of kAttentionSums, an f32 number per row, which engines write and nobody reads.
  int64_t SumsBytes() const;
};

/// Ids of the tensors that a plan reads and writes. The scale is given by value. The sums are the
/// logarithms of the rows' sums of exponentials: cuDNN has engines for graphs that yield them.
enum CudnnAttentionId : int64_t {
  kAttentionQ = 1,
  kAttentionK,
  kAttentionV,
  kAttentionMask,
  kAttentionY,
  kAttentionSums,
  kAttentionScale
};

EngineRules RulesOf(const CudnnAttention& attention, bool may_compile);

/// Execution plans for the device with these properties, those that cuDNN ranks best first. Errors
/// as of PlanConvolution. InvalidArgument for shapes that do not fit. The limit of the workspace
/// does not include SumsBytes(). Thread-safe.
absl::StatusOr<std::vector<CudnnEngine>> PlanAttention(const Cudnn& cudnn,
                                                       const CudnnAttention& attention,
                                                       const std::string& device_json,
                                                       const CudnnLimits& limits);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_ATTENTION_H_
