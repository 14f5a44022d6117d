// External locations: the files next to an ONNX file that contain its tensors and travel with it.
#ifndef MENDEL_ONNX_EXTERNAL_LOCATIONS_H_
#define MENDEL_ONNX_EXTERNAL_LOCATIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mendel {

/// Returns the locations that tensors of the model name (in initializers, attributes, subgraphs and
/// functions): as spelled, sorted, each once. The files are neither opened nor checked. Errors are
/// those of reading a model.
absl::StatusOr<std::vector<std::string>> ExternalLocations(const std::string& path);

}  // namespace mendel

#endif  // MENDEL_ONNX_EXTERNAL_LOCATIONS_H_
