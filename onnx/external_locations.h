// Which files beside an ONNX file hold its tensors: what has to travel with a model.
#ifndef MENDEL_ONNX_EXTERNAL_LOCATIONS_H_
#define MENDEL_ONNX_EXTERNAL_LOCATIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mendel {

/// The locations that tensors anywhere in the model name (initializers, attributes, subgraphs, functions), as they are spelled,
/// sorted, each once. Neither opened nor checked. Errors are those of reading a model.
absl::StatusOr<std::vector<std::string>> ExternalLocations(const std::string& path);

}  // namespace mendel

#endif  // MENDEL_ONNX_EXTERNAL_LOCATIONS_H_
