// Fields that a newer ONNX added: parsers drop them silently, which would change what a model
// means.
#ifndef MENDEL_ONNX_UNKNOWN_FIELDS_H_
#define MENDEL_ONNX_UNKNOWN_FIELDS_H_

#include <google/protobuf/message.h>

#include "absl/status/status.h"

namespace mendel {

/// Refuses fields that this version of ONNX's schema does not know, in `message` and in messages
/// within it. Messages that only document (metadata, annotations, device placement) may carry them.
/// Errors: Unimplemented, with the message's name and the field's number.
absl::Status RefuseUnknownFields(const google::protobuf::Message& message);

}  // namespace mendel

#endif  // MENDEL_ONNX_UNKNOWN_FIELDS_H_
