// From the bytes of a file to a checked ModelProto whose weights still lie in the file.
#ifndef MENDEL_ONNX_MODEL_READER_H_
#define MENDEL_ONNX_MODEL_READER_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onnx/mapped_file.h"
#include "third_party/onnx.pb.h"

namespace mendel {

struct ModelFile {
  /// raw_data of every tensor is a token (wire.h) that names an element of `raw`.
  onnx::ModelProto model;
  std::vector<std::span<const std::byte>> raw;
  OwnedBytes bytes;
};

/// Parses and refuses what this version cannot mean: IR versions outside 3 to 10, opsets outside 7 to 21, unknown fields.
absl::StatusOr<ModelFile> ReadModel(OwnedBytes bytes);

/// Lowest and highest supported opset of the standard domain.
inline constexpr int64_t kMinOpset = 7;
inline constexpr int64_t kMaxOpset = 21;

/// The version of the standard domain ("" or "ai.onnx") that `imports` names; refuses versions outside the range.
absl::StatusOr<int64_t> StandardOpset(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);

}  // namespace mendel

#endif  // MENDEL_ONNX_MODEL_READER_H_
