// The versions of the standard operators: which definition a model's opset calls for.
//
// An opset names all operators at once; an operator changes in few of them. A model is therefore
// never refused by the number of its opset: each operator that it uses is looked up.
#ifndef MENDEL_ONNX_OP_VERSIONS_H_
#define MENDEL_ONNX_OP_VERSIONS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace mendel {

/// The newest opset whose definitions are known.
inline constexpr int64_t kNewestOpset = 28;

/// The opset that last changed operator `name`, at most `opset`. Unimplemented: the operator is not
/// known, or `opset` is newer than all that is known. InvalidArgument: the operator is younger than
/// `opset`.
absl::StatusOr<int64_t> VersionInForce(std::string_view name, int64_t opset);

}  // namespace mendel

#endif  // MENDEL_ONNX_OP_VERSIONS_H_
