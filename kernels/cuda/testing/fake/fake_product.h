// A product that the fake cuBLASLt computes on the fake driver's memory, and its arithmetic.
#ifndef MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_PRODUCT_H_
#define MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_PRODUCT_H_

#include <cstdint>
#include <string>

#include "kernels/cuda/testing/fake/fake_state.h"

namespace mendel::cuda {

/// CUBLAS_STATUS_INVALID_VALUE.
inline constexpr int kFakeLtInvalidValue = 7;

/// An operation as cuBLASLt's descriptors contain it.
struct FakeOperation {
  int compute = 0, scale_type = 0;
  int32_t transpose_a = 0, transpose_b = 0;
  uint32_t epilogue = 1;
  uint64_t bias = 0;
};

/// A matrix that is stored by columns.
struct FakeLayout {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  int32_t batch = 1;
  int64_t batch_stride = 0;
};

struct FakePreference {
  uint64_t workspace = 0;
  uint32_t schemes = 7;
};

/// d = epilogue(alpha op(a) op(b) + beta c).
struct FakeProduct {
  FakeOperation operation;
  FakeLayout a, b, c, d;

  /// 0, or the status that cuBLASLt has for what does not fit or is not supported.
  int Check() const;
  /// True if operands are rounded to TF32.
  bool IsTf32() const;
  /// True if operands are rounded to TF32 or stored in a smaller format than the result.
  bool Rounds() const;
  /// The text of everything but addresses.
  std::string Key() const;

  struct Operands {
    uint64_t a = 0, b = 0, c = 0, d = 0;
    float alpha = 1, beta = 0;
  };
  /// 0, or the driver's code for memory that lies in no allocation.
  int Compute(FakeDriver::State& state, const Operands& operands) const;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_PRODUCT_H_
