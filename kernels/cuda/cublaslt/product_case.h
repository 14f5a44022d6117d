// Random matrix products as graphs, for tests.
#ifndef MENDEL_KERNELS_CUDA_CUBLASLT_PRODUCT_CASE_H_
#define MENDEL_KERNELS_CUDA_CUBLASLT_PRODUCT_CASE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/evaluate.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/device_case.h"

namespace mendel::cuda {

/// A MatMul with odd extents, vectors included, in f32, f16 or bf16: batches that broadcast or do not, operands behind Transpose
/// (of rows and columns, or of heads and positions), Reshape and Expand, stored right sides, and an epilogue of additions, Relu,
/// Gelu.
struct ProductCase {
  std::string told;
  Graph graph;
  std::vector<HostValue> inputs;
  int32_t product = -1;  ///< the MatMul
};
absl::StatusOr<ProductCase> RandomProduct(uint64_t seed);

/// The case as a program that computes the product by `algorithm` of `libraries`.
absl::StatusOr<DeviceCase> LoweredProduct(const ProductCase& one, const std::string& algorithm,
                                          std::span<const CallLibrary* const> libraries);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUBLASLT_PRODUCT_CASE_H_
