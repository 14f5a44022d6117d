// Fields that a newer ONNX added: parsers drop them silently, which would change what a model
// means.
#ifndef MENDEL_ONNX_UNKNOWN_FIELDS_H_
#define MENDEL_ONNX_UNKNOWN_FIELDS_H_

#include <google/protobuf/message.h>

#include "absl/status/status.h"

namespace mendel {

/// Unimplemented naming message and field number when `message` or a message within it carries a
/// field that this version of ONNX's schema does not know. Messages that only document (metadata,
/// annotations, device placement) may carry any.
absl::Status RefuseUnknownFields(const google::protobuf::Message& message);

}  // namespace mendel

#endif  // MENDEL_ONNX_UNKNOWN_FIELDS_H_
