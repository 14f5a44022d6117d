// ONNX models to graphs of the language.
//
// Opset 7 to 21 of the standard operators, IR version 3 to 10. Model-local functions are inlined, `If` with a constant condition
// takes its branch, shape computations are folded, operator inputs that the language wants as attributes (shapes, axes, pads)
// must come out constant. Everything else is refused with one sentence that names the node: InvalidArgument for malformed models,
// Unimplemented for well-formed ones outside the language.
//
// Weights are never copied into one message. Raw and external tensor data stay in the memory-mapped file (where aligned), so
// the files must not change while the graph lives.
#ifndef MENDEL_ONNX_IMPORT_H_
#define MENDEL_ONNX_IMPORT_H_

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace mendel {

struct ImportOptions {
  /// Shapes of inputs, which fix symbolic dimensions; an input named here must exist and its fixed dimensions must agree.
  std::vector<std::pair<std::string, Shape>> shapes;
  /// Inputs that become constants of the graph, by name.
  std::map<std::string, Tensor> bindings;
};

struct ImportResult {
  Graph graph;
  /// What the importer decided in the user's place, one sentence each.
  std::vector<std::string> notices;
  /// SHA-256 of the model file (external data not included), 64 hexadecimal digits.
  std::string model_hash;
};

absl::StatusOr<ImportResult> ImportOnnxFile(const std::string& path, const ImportOptions& options = {});

/// `bytes` are copied. `external_data_directory` empty: external data is refused.
absl::StatusOr<ImportResult> ImportOnnxBytes(std::string_view bytes, const std::string& external_data_directory,
                                             const ImportOptions& options = {});

/// trtexec's grammar: "input:8x3x224x224,mask:1x5"; "x:scalar" or "x:" is rank 0. Names may contain colons.
absl::StatusOr<std::vector<std::pair<std::string, Shape>>> ParseShapes(std::string_view text);

}  // namespace mendel

#endif  // MENDEL_ONNX_IMPORT_H_
