#include "client/model_options.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/status.h"
#include "client/format.h"
#include "runtime/npy.h"

namespace mendel {

void AddModelOptions(CLI::App& app, ModelOptions& options) {
  app.add_option("--shapes", options.shapes, "Input shapes, e.g. input:8x3x224x224,mask:8x128")->take_all();
  app.add_option("--bind", options.bindings, "Make an input a constant, NAME=FILE.npy")->take_all();
}

absl::StatusOr<ImportResult> ImportModel(const std::string& path, const ModelOptions& options, Context& context) {
  context.Input(path);
  ImportOptions import;
  import.shapes = options.known_shapes;
  for (const std::string& text : options.shapes) {
    MENDEL_ASSIGN_OR_RETURN(auto shapes, ParseShapes(text));
    for (auto& shape : shapes) import.shapes.push_back(std::move(shape));
  }
  for (const std::string& text : options.bindings) {
    MENDEL_ASSIGN_OR_RETURN(const auto assignment, ParseAssignment(text));
    context.Input(assignment.second);
    MENDEL_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(assignment.second));
    import.bindings.insert_or_assign(assignment.first, std::move(tensor));
  }
  MENDEL_ASSIGN_OR_RETURN(ImportResult result, ImportOnnxFile(path, import));
  for (const std::string& notice : result.notices) {
    context.Note(Cat("note: ", notice));
    context.facts()["notices"].push_back(notice);
  }
  return result;
}

}  // namespace mendel
