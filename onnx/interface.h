// The interface of an ONNX model as its file declares it: names, types and dimensions of inputs and
// outputs, symbolic dimensions by their names, and metadata. No operator is read.
#ifndef MENDEL_ONNX_INTERFACE_H_
#define MENDEL_ONNX_INTERFACE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/tensor.h"

namespace mendel {

struct DeclaredDimension {
  int64_t size = -1;  ///< negative: not fixed
  std::string name;   ///< name of a symbolic dimension; may be empty
};

struct DeclaredValue {
  std::string name;
  DType dtype = DType::kF32;
  bool has_shape = false;
  std::vector<DeclaredDimension> shape;
};

struct ModelInterface {
  std::vector<DeclaredValue> inputs;  ///< without those that initializers set
  std::vector<DeclaredValue> outputs;
  std::string producer_name, graph_name, domain, description;
  int64_t version = 0;
  std::map<std::string, std::string> metadata;
};

/// Errors of the file; Unimplemented for a value that is no tensor of the language.
absl::StatusOr<ModelInterface> ReadInterface(const std::string& path);
absl::StatusOr<ModelInterface> ParseInterface(std::string_view bytes);

}  // namespace mendel

#endif  // MENDEL_ONNX_INTERFACE_H_
