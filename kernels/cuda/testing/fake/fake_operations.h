// An operation graph of cuDNN, and its execution by the operators' own definitions.
#ifndef MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_OPERATIONS_H_
#define MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_OPERATIONS_H_

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
  bool is_by_value = false;  ///< one f32 number in the host's memory

  /// The bytes from the first element to the end of the last one.
  int64_t Bytes() const;
};

enum class FakeKind {
  kConvolution,
  kBackwardData,
  kAdd,
  kRelu,
  kSigmoid,
  kSwish,
  kGelu,
  kGeluTanh,
  kMatMul,
  kMul,
  kDiv,
  kSub,
  kExp,
  kLog,
  kMaxOver,
  kSumOver
};

struct FakeOperation {
  FakeKind kind = FakeKind::kConvolution;
  int64_t x = 0, other = 0, y = 0;  ///< ids; other: weights, the second summand, or 0
  Ints strides = {}, dilations = {}, pads_begin = {}, pads_end = {};
};

struct FakeOperations {
  std::map<int64_t, FakeTensor> tensors;
  std::vector<FakeOperation> operations;

  /// The id of the tensor that the last operation yields.
  int64_t Result() const { return operations.back().y; }
  /// True if the tensor is an operand of a convolution.
  bool IsMultiplied(int64_t id) const;
  /// True for graphs that only engines compute which are compiled at run time: activations but
  /// Relu, epilogues of transposed convolutions, attention.
  bool NeedFusion() const;
  /// Prints numbers with blanks between them. Parse reads them, InvalidArgument for other text.
  std::string Print() const;
  static absl::StatusOr<FakeOperations> Parse(const std::string& text);
  /// Computes in double and rounds what is stored; `memory` maps ids to memory. `tf32`:
  /// convolutions round their operands first. InvalidArgument if shapes do not fit.
  absl::Status Run(const std::function<std::byte*(int64_t id)>& memory, bool tf32) const;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_OPERATIONS_H_
