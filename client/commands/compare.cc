// mendel compare MODEL --with PLAN|onnxruntime|MODEL2 [--layers]: how far apart are the numbers?

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/command.h"
#include "client/comparison/other_side.h"
#include "client/comparison/value_errors.h"
#include "client/format.h"
#include "client/html/pages.h"
#include "client/library_path.h"
#include "client/members.h"
#include "client/model_options.h"
#include "client/model_session.h"
#include "client/peers/python.h"
#include "optimizer/output_check.h"
#include "runtime/cpu_topology.h"
#include "runtime/measure.h"
#include "runtime/npy.h"

namespace mendel::commands::compare {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kOnnxRuntime[] = "onnxruntime";

struct Options {
  std::string model, with, python, html;
  bool layers = false;
  ModelOptions import;
  std::vector<std::string> inputs;
  uint64_t seed = 1;
  std::optional<double> tolerance;
  SessionOptions session;
};

std::string ErrorText(double error) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", error);
  return error == 0 ? "0" : text;
}

std::string NumberText(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", number);
  return text;
}

/// One row of the table.
struct Row {
  std::string name, counterpart;
  TensorType type;
  bool output = false;
  double tolerance = 0;
  ValueErrors errors;
  std::string Beyond() const {
    if (!errors.first.has_value()) return "-";
    return Cat(IndexText(errors.first->index, ","), ": ", NumberText(errors.first->have), " for ",
               NumberText(errors.first->want));
  }
  std::vector<std::string> Cells() const {
    return {Cat(output ? "output " : "", name), TypeString(type),       ErrorText(errors.largest),
            ErrorText(errors.relative),         ErrorText(errors.mean), Beyond()};
  }
  Json Facts() const {
    Json facts = {
        {"name", name},        {"counterpart", counterpart}, {"type", TypeString(type)},
        {"output", output},    {"largest", errors.largest},  {"relative", errors.relative},
        {"mean", errors.mean}, {"unequal", errors.unequal},  {"tolerance", tolerance},
        {"beyond", nullptr}};
    if (errors.first.has_value()) {
      facts["beyond"] = {{"index", errors.first->index},
                         {"want", errors.first->want},
                         {"have", errors.first->have}};
    }
    return facts;
  }
};

const std::vector<std::string>& Head() {
  static const auto& head = *new std::vector<std::string>{
      "value", "type", "largest error", "relative", "mean error", "first beyond tolerance"};
  return head;
}

absl::StatusOr<std::map<std::string, Tensor>> ReadAssigned(const std::vector<std::string>& texts) {
  std::map<std::string, Tensor> tensors;
  for (const std::string& text : texts) {
    MENDEL_ASSIGN_OR_RETURN(const auto assignment, ParseAssignment(text));
    MENDEL_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(assignment.second));
    if (!tensors.emplace(assignment.first, std::move(tensor)).second)
      return InvalidInput("input '", assignment.first, "' is given twice");
  }
  return tensors;
}

/// The model, its inputs given or random.
absl::StatusOr<ComparedModel> ReadModel(const Options& options, ModelOptions import,
                                        Context& context) {
  ComparedModel model;
  model.path = options.model;
  model.layers = options.layers;
  MENDEL_ASSIGN_OR_RETURN(model.inputs, ReadAssigned(options.inputs));
  MENDEL_ASSIGN_OR_RETURN(model.bindings, ReadAssigned(import.bindings));
  if (import.shapes.empty() && import.known_shapes.empty()) {
    for (const auto& [name, tensor] : model.inputs)
      import.known_shapes.emplace_back(name, tensor.shape());
  }
  MENDEL_ASSIGN_OR_RETURN(model.imported, ImportModel(options.model, import, context));
  model.outputs = model.imported.graph.outputs().size();
  const std::vector<Tensor> random = RandomInputs(model.imported.graph, options.seed);
  for (size_t k = 0; k < random.size(); ++k)
    model.inputs.emplace(InputName(model.imported.graph.node(model.imported.graph.inputs()[k])),
                         random[k]);
  if (!options.layers) return model;
  import.every_value = true;
  MENDEL_ASSIGN_OR_RETURN(model.imported, ImportModel(options.model, import, context));
  return model;
}

absl::StatusOr<std::vector<Row>> Compare(const ComparedModel& model, const SideValues& side,
                                         const Options& options, Numerics numerics) {
  MENDEL_ASSIGN_OR_RETURN(const Plan plan, BaselinePlan(model.imported));
  MENDEL_ASSIGN_OR_RETURN(const auto session, Session::Create(plan, options.session));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> wanted, session->Run(model.inputs));
  std::map<std::string, const SideValue*> others;
  for (const SideValue& value : side.values) others.emplace(value.name, &value);
  std::vector<Row> rows;
  for (size_t k = 0; k < wanted.size(); ++k) {
    const std::string& name = session->outputs()[k].name;
    const auto found = others.find(name);
    if (found == others.end()) continue;
    const Tensor& have = found->second->value;
    Row row{name, found->second->counterpart, wanted[k].type(), k < model.outputs, 0, {}};
    if (have.type() != row.type) {
      return InvalidInput("value '", name, "' is ", TypeString(row.type), " in the model and ",
                          TypeString(have.type()), " in ", options.with);
    }
    row.tolerance = options.tolerance.value_or(OutputTolerance(row.type.dtype, numerics));
    row.errors = CompareElements(wanted[k], have, row.tolerance);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Rows in the order of the model's nodes: its outputs last.
absl::Status Report(const ComparedModel& model, const SideValues& side, std::vector<Row> rows,
                    const Options& options, Context& context) {
  std::stable_partition(rows.begin(), rows.end(), [](const Row& row) { return !row.output; });
  std::set<std::string> compared;
  std::vector<std::vector<std::string>> cells;
  const Row* first = nullptr;
  size_t beyond = 0;
  Json& facts = context.facts();
  facts["model"] = options.model;
  facts["with"] = options.with;
  facts["runtime"] = side.runtime;
  facts["seed"] = options.seed;
  facts["notes"] = side.notes;
  facts["values"] = Json::array();
  for (const Row& row : rows) {
    compared.insert(row.name);
    cells.push_back(row.Cells());
    facts["values"].push_back(row.Facts());
    if (!row.errors.first.has_value()) continue;
    ++beyond;
    if (first == nullptr) first = &row;
  }
  facts["without_counterpart"] = Json::array();
  for (const GraphOutput& output : model.imported.graph.outputs()) {
    if (compared.count(output.name) == 0) facts["without_counterpart"].push_back(output.name);
  }
  facts["first_beyond"] = first == nullptr ? Json() : Json(first->name);
  const size_t unpaired = facts["without_counterpart"].size();
  const std::string verdict = first == nullptr
                                  ? "all within tolerance"
                                  : Cat(beyond, " beyond tolerance, the first is ", first->name);
  facts["summary"] = Cat(rows.size(), " values compared, ", verdict,
                         unpaired == 0 ? "" : Cat("; ", unpaired, " without a counterpart"));
  context.Line(Cat(options.model, " with ", options.with, " (", side.runtime, ")"));
  std::vector<std::vector<std::string>> table = {Head()};
  table.insert(table.end(), cells.begin(), cells.end());
  for (const std::string& line : TableLines(table, {2, 3, 4})) context.Line(line);
  for (const std::string& note : side.notes) context.Note(Cat("note: ", note));
  context.Line(facts["summary"].get<std::string>());
  if (first != nullptr) context.Answer(kExitNo);
  if (options.html.empty()) return absl::OkStatus();
  const std::string command = Cat("mendel compare ", options.model, " --with ", options.with,
                                  options.layers ? " --layers" : "", " --html ", options.html);
  std::ofstream file(options.html, std::ios::binary);
  file << ComparisonPage(facts, Head(), cells, command) << std::flush;
  if (!file) return absl::UnavailableError(Cat("cannot write ", options.html));
  context.Line(Cat("wrote ", options.html));
  return absl::OkStatus();
}

absl::StatusOr<SideValues> OtherValues(const ComparedModel& model, const ModelOptions& import,
                                       const std::optional<Plan>& plan, const Options& options,
                                       Context& context) {
  if (plan.has_value()) {
    context.Input(options.with);
    return ValuesOfPlan(model, *plan, options.session, options.seed);
  }
  if (options.with == kOnnxRuntime) {
    MENDEL_ASSIGN_OR_RETURN(const Python python,
                            FindPython(options.python, "--python", {kOnnxRuntime}));
    const int threads = options.session.threads > 0 ? options.session.threads : PhysicalCores();
    return ValuesOfOnnxRuntime(model, threads, python.path);
  }
  ModelOptions own = import;
  MENDEL_ASSIGN_OR_RETURN(ImportResult other, ImportModel(options.with, own, context));
  const size_t outputs = other.graph.outputs().size();
  if (options.layers) {
    own.every_value = true;
    MENDEL_ASSIGN_OR_RETURN(other, ImportModel(options.with, own, context));
  }
  return ValuesOfModel(model, other, outputs, options.session);
}

absl::Status Run(const Options& options, Context& context) {
  if (options.with != kOnnxRuntime && !std::filesystem::exists(options.with)) {
    return absl::NotFoundError(Cat("there is no file ", options.with,
                                   "; --with takes a plan, an ONNX model, or the word ",
                                   kOnnxRuntime));
  }
  std::optional<Plan> plan;
  ModelOptions import = options.import;
  Numerics numerics = Numerics::kDefault;
  if (options.with != kOnnxRuntime && IsPlanFile(options.with)) {
    MENDEL_ASSIGN_OR_RETURN(plan, ReadMember(options.with, options.import.shapes));
    if (import.shapes.empty()) import.known_shapes = InputShapes(plan->graph);
    MENDEL_ASSIGN_OR_RETURN(numerics, ParseNumerics(plan->info.target().numerics()));
  }
  MENDEL_ASSIGN_OR_RETURN(const ComparedModel model, ReadModel(options, import, context));
  MENDEL_ASSIGN_OR_RETURN(const SideValues side,
                          OtherValues(model, import, plan, options, context));
  MENDEL_ASSIGN_OR_RETURN(std::vector<Row> rows, Compare(model, side, options, numerics));
  return Report(model, side, std::move(rows), options, context);
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model, "ONNX model; it runs as it is")->required();
  app.add_option("--with", options->with, "A plan, another model, or onnxruntime")->required();
  app.add_flag("--layers", options->layers,
               "Also compare the values between inputs and outputs, by name or, of a plan, by what "
               "they compute");
  AddModelOptions(app, options->import);
  AddLibraryPathOption(app);
  app.add_option("--input", options->inputs, "Value of an input, NAME=FILE.npy")->take_all();
  app.add_option("--seed", options->seed, "Seed of the inputs that are not given")
      ->capture_default_str();
  app.add_option(
         "--tolerance", options->tolerance,
         "Largest allowed error of an element, as a share of its tensor's largest magnitude "
         "(default: the rounding error of the type)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--threads", options->session.threads,
                 "Threads (default: physical cores; of a plan: as it was tuned)")
      ->check(CLI::PositiveNumber);
  app.add_flag("--retune", options->session.retune,
               "Accept a plan of another machine, and use default algorithms for it");
  AddPythonOption(app, "--python", options->python);
  app.add_option("--html", options->html, "Also write the table as one page");
  return [options](Context& context) { return Run(*options, context); };
}

Command Make() {
  return {"compare", "Compares a model's numbers with a plan's, another model's or ONNX Runtime's",
          &Setup};
}

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::compare
