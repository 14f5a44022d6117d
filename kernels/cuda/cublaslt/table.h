// cuBLASLt behind dlopen: the few entry points and numbers that matrix products need, declared here
// so that neither its headers nor a toolkit is needed to build.
#ifndef MENDEL_KERNELS_CUDA_CUBLASLT_TABLE_H_
#define MENDEL_KERNELS_CUDA_CUBLASLT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

/// Values, attributes and layouts as in cublasLt.h, cublas_api.h and library_types.h; they are the
/// same in cuBLAS 12 and 13.
namespace cublaslt {

struct Algorithm {
  uint64_t data[8] = {};
};

/// A proposal of a heuristic; valid where `state` is 0.
struct Proposal {
  Algorithm algorithm;
  size_t workspace_bytes = 0;
  int state = 0;
  float waves = 0;
  int reserved[4] = {};
};

enum Compute { kCompute32F = 68, kCompute32FPedantic = 69, kCompute32FFastTf32 = 77 };
enum DataType { kFloat32 = 0, kFloat16 = 2, kBFloat16 = 14 };
enum OperationAttribute { kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8 };
enum LayoutAttribute { kBatchCount = 5, kBatchStride = 6 };
enum PreferenceAttribute { kMaxWorkspaceBytes = 1, kReductionSchemes = 3 };
enum Epilogue : uint32_t {
  kNoEpilogue = 1,
  kRelu = 2,
  kBias = 4,
  kGeluTanh = 32
};  ///< kBias goes with either of the others
enum ReductionScheme : uint32_t {
  kReductionInSums = 2
};  ///< parts of a sum are added in the compute type
inline constexpr int32_t kNotTransposed = 0, kTransposed = 1;

/// Results of calls.
inline constexpr int kAllocationFailed = 3, kArchitectureMismatch = 8, kNotSupported = 15;

}  // namespace cublaslt

/// The entry points as in cublasLt.h; results are 0 or an error.
struct CublasLt {
  size_t (*GetVersion)() = nullptr;
  const char* (*GetStatusName)(int status) = nullptr;
  const char* (*GetStatusString)(int status) = nullptr;
  int (*Create)(void** handle) = nullptr;
  int (*Destroy)(void* handle) = nullptr;
  int (*MatmulDescCreate)(void** operation, int compute, int scale_type) = nullptr;
  int (*MatmulDescSetAttribute)(void* operation, int attribute, const void* value,
                                size_t bytes) = nullptr;
  int (*MatmulDescDestroy)(void* operation) = nullptr;
  int (*MatrixLayoutCreate)(void** layout, int type, uint64_t rows, uint64_t columns,
                            int64_t leading) = nullptr;
  int (*MatrixLayoutSetAttribute)(void* layout, int attribute, const void* value,
                                  size_t bytes) = nullptr;
  int (*MatrixLayoutDestroy)(void* layout) = nullptr;
  int (*MatmulPreferenceCreate)(void** preference) = nullptr;
  int (*MatmulPreferenceSetAttribute)(void* preference, int attribute, const void* value,
                                      size_t bytes) = nullptr;
  int (*MatmulPreferenceDestroy)(void* preference) = nullptr;
  int (*MatmulAlgoGetHeuristic)(void* handle, void* operation, void* a, void* b, void* c, void* d,
                                void* preference, int room, cublaslt::Proposal* proposals,
                                int* count) = nullptr;
  /// Scales lie in host memory, all other addresses in the device's.
  int (*Matmul)(void* handle, void* operation, const void* alpha, const void* a, void* a_layout,
                const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                void* d, void* d_layout, const cublaslt::Algorithm* algorithm, void* workspace,
                size_t workspace_bytes, DriverStream* stream) = nullptr;

  std::string path;
  int version = 0;  ///< 130100: 13.1.0

  /// The table of this process. NotFound where there is no cuBLASLt, FailedPrecondition when it is
  /// neither of cuBLAS 12 nor of 13.
  static absl::StatusOr<const CublasLt*> Get();
  /// OK; Unimplemented where cuBLASLt does not support the request, ResourceExhausted where memory
  /// ran out, else Internal. All name `what` and begin with the library's name of the error.
  absl::Status Check(int result, const std::string& what) const;
};

/// "13.1.0".
std::string CublasLtVersionText(int version);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUBLASLT_TABLE_H_
