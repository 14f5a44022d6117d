// The options of every command that reads an ONNX model: --shapes and --bind.
#ifndef MENDEL_CLIENT_MODEL_OPTIONS_H_
#define MENDEL_CLIENT_MODEL_OPTIONS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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
  /// Shapes from the command itself; not an option.
  NamedShapes known_shapes = {};
  /// ImportOptions::symbol_sizes; not an option.
  std::map<std::string, int64_t> symbol_sizes = {};
  /// ImportOptions::keep_inexact_constants; not an option.
  bool keep_inexact_constants = false;
  /// ImportOptions::size_relations; not an option.
  bool size_relations = false;
  /// ImportOptions::every_value; not an option.
  bool every_value = false;
  /// ImportOptions::choose_deciding; not an option.
  bool choose_deciding = false;
  /// ImportOptions::interrupted; not an option.
  const std::atomic<bool>* interrupted = nullptr;
  /// The model itself, which is then not read from its path; not an option. Its external data is
  /// in the folder of the path.
  std::optional<std::string_view> bytes = {};
};

/// The input shapes from all --shapes options. Together they are one set (empty without any). If
/// several name one input, each is a set of its own, in order: the members of a bundle.
/// InvalidArgument when one option names an input twice, or those of a bundle name different
/// inputs.
absl::StatusOr<std::vector<NamedShapes>> ShapeSets(const std::vector<std::string>& shapes);

/// Declares --shapes and --bind. `options` must outlive the command line's parsing.
void AddModelOptions(CLI::App& app, ModelOptions& options);

/// The folder of external data for a model in memory that is named `path`; empty: none.
std::string ExternalDataFolder(const std::string& path);

/// Imports `path` and reports the importer's notices. InvalidArgument when an input has several
/// shapes.
absl::StatusOr<ImportResult> ImportModel(const std::string& path, const ModelOptions& options,
                                         Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_MODEL_OPTIONS_H_
