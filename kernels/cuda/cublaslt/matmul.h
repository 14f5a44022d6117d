// Matrix products with their epilogue through cuBLASLt: their description, their algorithms, and
// their launch on a stream.
#ifndef MENDEL_KERNELS_CUDA_CUBLASLT_MATMUL_H_
#define MENDEL_KERNELS_CUDA_CUBLASLT_MATMUL_H_

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/types.h"
#include "kernels/cuda/backend/resources.h"
#include "kernels/cuda/cublaslt/table.h"

namespace mendel::cuda {

enum class LtActivation { kNone, kRelu, kGeluTanh };

/// Matrices of a batch, row by row: element (i, j) of matrix b lies at b * batch_stride + i *
/// leading + j, or with i and j exchanged where it is stored transposed. In elements; a batch
/// stride of 0 is one matrix for all.
struct LtMatrix {
  bool transposed = false;
  int64_t leading = 1;
  int64_t batch_stride = 0;
  auto operator<=>(const LtMatrix&) const = default;
};

/// y[batch, m, n] = activation(left[batch, m, k] right[batch, k, n] + residual + bias), sums in
/// f32. y and the residual lie row by row without gaps; the bias is a vector of n.
struct LtProduct {
  DType dtype = DType::kF32;     ///< f32, f16 or bf16
  DType operands = DType::kF32;  ///< of left and right: dtype, or for f32 one of the others
  bool tf32 = false;             ///< of f32 operands: they are rounded to TF32
  int64_t batch = 1, m = 0, n = 0, k = 0;
  LtMatrix left, right;
  bool residual = false;
  bool bias = false;
  LtActivation activation = LtActivation::kNone;

  bool IsAlone() const { return !residual && !bias && activation == LtActivation::kNone; }
  auto operator<=>(const LtProduct&) const = default;
};

/// "_bias_relu" and the like; "" for the product alone.
std::string EpilogueName(const LtProduct& product);

struct LtAlgorithm {
  cublaslt::Algorithm data;
  int64_t workspace_bytes = 0;
};

/// The descriptors of a product, which every call of cuBLASLt takes. Movable.
class LtDescriptors {
 public:
  /// f32 is multiplied as CUBLAS_COMPUTE_32F_PEDANTIC: no TF32, no emulation by smaller formats,
  /// whatever the environment says; or as CUBLAS_COMPUTE_32F_FAST_TF32 where the product says so.
  /// Products of f16 and bf16 are exact in f32, so that tensor cores may make them.
  static absl::StatusOr<LtDescriptors> Make(const CublasLt& lt, const LtProduct& product);

  void* operation() const { return operation_.get(); }
  /// cuBLASLt stores by columns. It receives y' = right' left', where a' is the memory of `a` read
  /// by columns.
  void* left() const { return left_.get(); }
  void* right() const { return right_.get(); }
  void* result() const { return result_.get(); }

 private:
  Owned<void*> operation_, left_, right_, result_;
};

/// At most `most` algorithms that need no more workspace than `workspace_limit`, as cuBLASLt's
/// heuristics rank them; none where there is none for the device of `handle`. Operands must be
/// aligned to 256 bytes. Parts of a sum are only ever added in f32. Errors are those of
/// CublasLt::Check.
absl::StatusOr<std::vector<LtAlgorithm>> ProposeAlgorithms(const CublasLt& lt, void* handle,
                                                           const LtProduct& product,
                                                           int64_t workspace_limit, int most);

/// Device addresses; 0 for what the product does not have.
struct LtOperands {
  uint64_t left = 0, right = 0, residual = 0, bias = 0, result = 0;
};

/// The address of the bias is part of the operation's description: set once, before the first call.
absl::Status SetBias(const CublasLt& lt, const LtDescriptors& descriptors, uint64_t address);

/// Puts the product onto `stream`; may be captured.
absl::Status EnqueueProduct(const CublasLt& lt, void* handle, const LtProduct& product,
                            const LtDescriptors& descriptors, const LtAlgorithm& algorithm,
                            const LtOperands& operands, uint64_t workspace, DriverStream* stream);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUBLASLT_MATMUL_H_
