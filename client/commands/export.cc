// mendel export M.plan --onnx out.onnx [--shapes ..]: the optimized graph in standard operators.

#include "onnx/export.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/command.h"
#include "client/members.h"

namespace mendel::commands::export_plan {
namespace {

struct Options {
  std::string plan;
  std::vector<std::string> shapes;
  std::string onnx;
};

absl::Status Export(const Options& options, Context& context) {
  context.Input(options.plan);
  MENDEL_ASSIGN_OR_RETURN(const Plan plan, ReadMember(options.plan, options.shapes));
  MENDEL_RETURN_IF_ERROR(ExportOnnx(plan.graph, options.onnx));
  context.Line(Cat("wrote ", options.onnx));
  context.facts()["file"] = options.onnx;
  return absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("plan", options->plan, "Plan file")->required();
  app.add_option("--onnx", options->onnx, "ONNX file to write")->required();
  AddMemberOption(app, options->shapes);
  return [options](Context& context) { return Export(*options, context); };
}

Command Make() { return {"export", "Writes a plan's graph as an ONNX model", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::export_plan
