// EPContext nodes: compiled parts in a model file, or in files beside it.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_CONTEXT_NODE_H_
#define MENDEL_CLIENT_ONNXRUNTIME_CONTEXT_NODE_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/onnxruntime/context_blob.h"
#include "client/onnxruntime/graph_view.h"
#include "client/onnxruntime/settings.h"

namespace mendel::ort {

/// True for an EPContext node that this provider made.
bool IsContextNode(const ViewNode& node);

/// The part of a context node. `model_path`: of the model that has the node; its folder has the
/// files of parts that are not embedded.
absl::StatusOr<ContextBlob> ReadContext(const ViewNode& node, const std::string& model_path);

/// A node that stands for `blob`, with `interface` as its inputs and outputs; ONNX Runtime owns it
/// from then on. A part that is not embedded is written beside the model to be.
absl::StatusOr<Node*> WriteContext(const RuntimeApi& api, const ContextBlob& blob,
                                   const std::string& name, const NodeInterface& interface,
                                   const Settings& settings, const std::string& model_path);

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_CONTEXT_NODE_H_
