// From the bytes of a file to a checked ModelProto whose weights still lie in the file.
#ifndef MENDEL_ONNX_MODEL_READER_H_
#define MENDEL_ONNX_MODEL_READER_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onnx/mapped_file.h"
#include "onnx/model.pb.h"

namespace mendel {

struct ModelFile {
  /// raw_data of every tensor is a token (wire.h) that names an element of `raw`.
  onnx::ModelProto model;
  std::vector<std::span<const std::byte>> raw;
  OwnedBytes bytes;
};

/// Parses and refuses unknown fields, which a newer IR version may bring. The number of the IR
/// version itself says nothing: whatever it adds is a field, a type or an operator.
absl::StatusOr<ModelFile> ReadModel(OwnedBytes bytes);

/// The version of the standard domain ("" or "ai.onnx") that `imports` names, 0 when it names none.
/// InvalidArgument when it names two, or one below 1.
absl::StatusOr<int64_t> StandardOpset(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);

}  // namespace mendel

#endif  // MENDEL_ONNX_MODEL_READER_H_
