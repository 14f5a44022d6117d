// The options that every command reading an ONNX model shares: --shapes and --bind.
#ifndef MENDEL_CLIENT_MODEL_OPTIONS_H_
#define MENDEL_CLIENT_MODEL_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/command.h"
#include "onnx/import.h"
#include "runtime/plan.h"

namespace CLI {
class App;
}

namespace mendel {

struct ModelOptions {
  std::vector<std::string> shapes;
  std::vector<std::string> bindings;
  /// Shapes that the command itself knows; not an option.
  NamedShapes known_shapes = {};
};

/// The input shapes that the uses of --shapes ask for: all together one set (empty without any), or, where an input is named by
/// several uses, one set a use, in order: the members of a bundle. InvalidArgument when a use names an input twice, or those of a
/// bundle do not name the same inputs.
absl::StatusOr<std::vector<NamedShapes>> ShapeSets(const std::vector<std::string>& shapes);

/// Declares --shapes and --bind. `options` must outlive the command line's parsing.
void AddModelOptions(CLI::App& app, ModelOptions& options);

/// Imports `path` and tells the importer's notices. InvalidArgument when an input is given several shapes.
absl::StatusOr<ImportResult> ImportModel(const std::string& path, const ModelOptions& options, Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_MODEL_OPTIONS_H_
