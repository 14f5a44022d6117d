#include "client/model_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/status.h"
#include "client/format.h"
#include "runtime/npy.h"

namespace mendel {

void AddModelOptions(CLI::App& app, ModelOptions& options) {
  app.add_option("--shapes", options.shapes, "Input shapes, e.g. input:8x3x224x224,mask:8x128")
      ->take_all();
  app.add_option("--bind", options.bindings, "Make an input a constant, NAME=FILE.npy")->take_all();
}

absl::StatusOr<std::vector<NamedShapes>> ShapeSets(const std::vector<std::string>& texts) {
  std::vector<NamedShapes> uses;
  std::map<std::string, size_t> named;  // by how many uses
  for (const std::string& text : texts) {
    MENDEL_ASSIGN_OR_RETURN(NamedShapes shapes, ParseShapes(text));
    for (const auto& [name, shape] : shapes) ++named[name];
    uses.push_back(std::move(shapes));
  }
  const bool bundle =
      std::any_of(named.begin(), named.end(), [](const auto& input) { return input.second > 1; });
  if (bundle) {
    for (const auto& [name, count] : named) {
      if (count != uses.size())
        return InvalidInput("a bundle needs a shape of input '", name, "' in every --shapes");
    }
    return uses;
  }
  NamedShapes all;
  for (NamedShapes& use : uses)
    all.insert(all.end(), std::make_move_iterator(use.begin()), std::make_move_iterator(use.end()));
  return std::vector<NamedShapes>{std::move(all)};
}

namespace {

absl::StatusOr<ImportResult> Import(const std::string& path, const ModelOptions& options,
                                    const ImportOptions& import) {
  if (!options.bytes.has_value()) return ImportOnnxFile(path, import);
  return ImportOnnxBytes(*options.bytes, ExternalDataFolder(path), import);
}

}  // namespace

std::string ExternalDataFolder(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

absl::StatusOr<ImportResult> ImportModel(const std::string& path, const ModelOptions& options,
                                         Context& context) {
  if (!options.bytes.has_value()) context.Input(path);
  ImportOptions import;
  import.shapes = options.known_shapes;
  import.symbol_sizes = options.symbol_sizes;
  import.keep_inexact_constants = options.keep_inexact_constants;
  import.size_relations = options.size_relations;
  import.every_value = options.every_value;
  import.choose_deciding = options.choose_deciding;
  import.interrupted = options.interrupted;
  MENDEL_ASSIGN_OR_RETURN(auto sets, ShapeSets(options.shapes));
  if (sets.size() > 1) {
    return InvalidInput("input '", sets[0][0].first, "' is given ", sets.size(),
                        " shapes; only mendel optimize takes several, and makes a bundle");
  }
  for (auto& shape : sets[0]) import.shapes.push_back(std::move(shape));
  for (const std::string& text : options.bindings) {
    MENDEL_ASSIGN_OR_RETURN(const auto assignment, ParseAssignment(text));
    context.Input(assignment.second);
    MENDEL_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(assignment.second));
    import.bindings.insert_or_assign(assignment.first, std::move(tensor));
  }
  MENDEL_ASSIGN_OR_RETURN(ImportResult result, Import(path, options, import));
  for (const std::string& notice : result.notices) {
    context.Note(Cat("note: ", notice));
    context.facts()["notices"].push_back(notice);
  }
  return result;
}

}  // namespace mendel
