// A compiled part as the bytes of an EPContext node: its model, and plans for some shapes.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_CONTEXT_BLOB_H_
#define MENDEL_CLIENT_ONNXRUNTIME_CONTEXT_BLOB_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace mendel::ort {

struct ContextBlob {
  std::string model;               ///< bytes of an ONNX model (part_model.h)
  std::vector<std::string> plans;  ///< bytes of plan files
};

std::string EncodeContext(const ContextBlob& blob);

/// InvalidArgument for bytes of another program or version, and for damaged ones.
absl::StatusOr<ContextBlob> DecodeContext(std::string_view bytes);

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_CONTEXT_BLOB_H_
