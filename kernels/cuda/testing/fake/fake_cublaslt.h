// cuBLASLt's function table without a GPU: products are computed on the fake driver's memory. For
// tests.
#ifndef MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_CUBLASLT_H_
#define MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_CUBLASLT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/cuda/cublaslt/table.h"

namespace mendel::cuda {

/// Version 13.1.0 for the FakeDriver of this process, which must be alive while entries are called.
/// Calls count as its calls, under names such as "cublasLtMatmul", and fail with the error that it
/// injects (FakeDriver::FailAt).
///
/// Like the real library, it rejects attributes of another size, matrices that do not fit, leading
/// dimensions below the rows, algorithms of another product, too little workspace, and a product
/// whose first execution is captured. It multiplies f32 in pedantic mode or in TF32, which rounds
/// the operands, and refuses other modes. It adds parts of sums in f32 only; Relu maps NaN to 0. It
/// proposes three algorithms that need 4 KiB, nothing and 1 MiB of workspace (and overwrite it),
/// and a fourth one that needs 64 MiB. One at a time in a process.
class FakeCublasLt {
 public:
  FakeCublasLt();
  ~FakeCublasLt();
  FakeCublasLt(const FakeCublasLt&) = delete;
  FakeCublasLt& operator=(const FakeCublasLt&) = delete;

  const CublasLt& table() const { return table_; }

  /// From now on there are no more than `most` algorithms with this epilogue.
  void LimitProposals(uint32_t epilogue, int most);

  /// Products that were computed, replayed ones included.
  int64_t Products() const;
  /// The products whose operands were rounded: to TF32, or to a smaller format than the result's.
  int64_t RoundedProducts() const;
  /// Lists what was made and not destroyed, for people; empty if there is nothing.
  std::string Leaks() const;

  struct State;

 private:
  CublasLt table_;
  std::unique_ptr<State> state_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_CUBLASLT_H_
