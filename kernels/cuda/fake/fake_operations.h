// What an operation graph of cuDNN means, and its execution by the operators' own definitions.
#ifndef MENDEL_KERNELS_CUDA_FAKE_FAKE_OPERATIONS_H_
#define MENDEL_KERNELS_CUDA_FAKE_FAKE_OPERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/attributes.h"
#include "graph/types.h"

namespace mendel::cuda {

struct FakeTensor {
  int64_t id = 0;
  DType dtype = DType::kF32;
  Shape dimensions, strides;
  bool is_virtual = false;

  /// From the first to behind the last element.
  int64_t Bytes() const;
};

enum class FakeKind { kConvolution, kBackwardData, kAdd, kRelu };

struct FakeOperation {
  FakeKind kind = FakeKind::kConvolution;
  int64_t x = 0, other = 0, y = 0;  ///< ids; other: weights, or the second summand
  Ints strides = {}, dilations = {}, pads_begin = {}, pads_end = {};
};

struct FakeOperations {
  std::map<int64_t, FakeTensor> tensors;
  std::vector<FakeOperation> operations;

  /// The id of the tensor that the last operation yields.
  int64_t Result() const { return operations.back().y; }
  /// Whether it is an operand of a convolution.
  bool IsMultiplied(int64_t id) const;
  /// Numbers with blanks between them, and back. InvalidArgument for what Print did not write.
  std::string Print() const;
  static absl::StatusOr<FakeOperations> Parse(const std::string& text);
  /// InvalidArgument where shapes do not fit. In double, rounded once; memory by id. `tf32`: convolutions round their operands
  /// first.
  absl::Status Run(const std::function<std::byte*(int64_t id)>& memory, bool tf32) const;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FAKE_FAKE_OPERATIONS_H_
