// The options that every command reading an ONNX model shares: --shapes and --bind.
#ifndef MENDEL_CLIENT_MODEL_OPTIONS_H_
#define MENDEL_CLIENT_MODEL_OPTIONS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/command.h"
#include "onnx/import.h"

namespace CLI {
class App;
}

namespace mendel {

struct ModelOptions {
  std::vector<std::string> shapes;
  std::vector<std::string> bindings;
  /// Shapes that the command itself knows; not an option.
  std::vector<std::pair<std::string, Shape>> known_shapes = {};
};

/// Declares --shapes and --bind. `options` must outlive the command line's parsing.
void AddModelOptions(CLI::App& app, ModelOptions& options);

/// Imports `path` and tells the importer's notices.
absl::StatusOr<ImportResult> ImportModel(const std::string& path, const ModelOptions& options, Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_MODEL_OPTIONS_H_
