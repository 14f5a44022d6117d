// Attributes of a node of ONNX Runtime.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_ATTRIBUTES_H_
#define MENDEL_CLIENT_ONNXRUNTIME_ATTRIBUTES_H_

#include "absl/status/status.h"
#include "client/onnxruntime/runtime_api.h"
#include "onnx/model.pb.h"

namespace mendel::ort {

/// Adds the attributes of `node` to `proto`. Subgraphs are left out.
absl::Status ReadAttributes(const RuntimeApi& api, const Node* node, onnx::NodeProto& proto);

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_ATTRIBUTES_H_
