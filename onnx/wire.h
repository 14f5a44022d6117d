// A walk over the wire format of a ModelProto that takes the weights out before protobuf sees the
// message.
//
// Protobuf messages end at 2 GiB and own their bytes. Weights therefore stay where they are (a
// memory map): every raw_data field is replaced by the index of a span into the original bytes.
#ifndef MENDEL_ONNX_WIRE_H_
#define MENDEL_ONNX_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mendel {

struct StrippedModel {
  /// The message with each raw_data replaced by RawToken(index into raw).
  std::string message;
  std::vector<std::span<const std::byte>> raw;
};

/// InvalidArgument when the bytes are not a sequence of protobuf fields along the paths that lead
/// to tensors, or nested too deeply. training_info is left out: it does not take part in inference.
absl::StatusOr<StrippedModel> StripRawData(std::span<const std::byte> model);

/// The eight bytes that stand for span `index`, and back.
std::string RawToken(uint64_t index);
std::optional<uint64_t> ParseRawToken(const std::string& token);

}  // namespace mendel

#endif  // MENDEL_ONNX_WIRE_H_
