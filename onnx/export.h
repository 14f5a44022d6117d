// Graphs of the language as ONNX models that other runtimes load: mutants and corrections spelled
// in standard operators.
#ifndef MENDEL_ONNX_EXPORT_H_
#define MENDEL_ONNX_EXPORT_H_

#include <string>

#include "absl/status/status.h"
#include "graph/graph.h"

namespace mendel {

/// Writes `graph` to `path`: opset 17 and IR 8, or opset 21 and IR 10 when an operator needs it.
/// Symbols and literals become initializers, computations on weights stay nodes. More than 1 GiB of
/// them goes to `path`.data as external data. Files are complete under a temporary name before they
/// get their own. Unimplemented names an operator that ONNX cannot spell.
absl::Status ExportOnnx(const Graph& graph, const std::string& path);

}  // namespace mendel

#endif  // MENDEL_ONNX_EXPORT_H_
