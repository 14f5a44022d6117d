// Checks of indices that several operators share.
#ifndef MENDEL_ONNX_OPS_INDEXING_H_
#define MENDEL_ONNX_OPS_INDEXING_H_

#include "onnx/op_context.h"

namespace mendel {

/// `indices` with every constant index of `extent` moved into [0, extent); run-time indices stay as
/// they are.
absl::StatusOr<ValueId> CheckedIndices(OpContext& op, ValueId indices, int64_t extent);

}  // namespace mendel

#endif  // MENDEL_ONNX_OPS_INDEXING_H_
