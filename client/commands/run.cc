// mendel run FILE --input NAME=x.npy ... --output-dir DIR: a plan, the plan of a bundle for the
// shapes of the given inputs, or an ONNX model as it is.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "base/status.h"
#include "client/command.h"
#include "client/format.h"
#include "client/input_files.h"
#include "client/library_path.h"
#include "client/members.h"
#include "client/model_options.h"
#include "client/model_session.h"
#include "runtime/bundle_session.h"
#include "runtime/measure.h"
#include "runtime/npy.h"
#include "runtime/plan_file.h"

namespace mendel::commands::run {
namespace {

struct Options {
  std::string plan;
  std::vector<std::string> inputs;
  std::string output_dir = ".";
  uint64_t random_seed = 0;
  std::vector<std::string> shapes;
  SessionOptions session;
};

absl::Status WriteOutputs(const Session& session, const std::vector<Tensor>& results,
                          const std::string& folder, Context& context) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) return absl::ErrnoToStatus(code.value(), Cat("cannot create ", folder));
  std::set<std::string> taken;
  for (size_t k = 0; k < results.size(); ++k) {
    const ValueInfo& output = session.outputs()[k];
    std::string file = FileNameOf(output.name);
    while (!taken.insert(file).second) file += "_";
    const std::string path = (std::filesystem::path(folder) / (file + ".npy")).string();
    MENDEL_RETURN_IF_ERROR(WriteNpy(results[k], path));
    context.Line(Cat(output.name, "  ", TypeString(output.type), "  ", path));
    context.facts()["outputs"].push_back(
        {{"name", output.name}, {"type", TypeString(output.type)}, {"file", path}});
  }
  return absl::OkStatus();
}

/// Number of a member, by the shapes of the inputs given, and those that the caller names.
absl::StatusOr<size_t> ChooseByShapes(const BundleSession& bundle,
                                      const std::map<std::string, Tensor>& inputs,
                                      const Options& options, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(NamedShapes wanted, ParseMemberShapes(options.shapes));
  for (const auto& [name, tensor] : inputs) wanted.emplace_back(name, tensor.shape());
  const auto number =
      options.shapes.empty() ? bundle.Choose(wanted) : ChooseMember(bundle.offered(), wanted);
  if (!number.ok()) return Annotate(number.status(), options.plan);
  if (bundle.size() > 1) {
    const std::string shapes = ShapesText(bundle.offered()[*number]);
    context.Line(Cat("member ", *number, "  ", shapes));
    context.facts()["member"] = {{"number", *number}, {"inputs", shapes}};
  }
  return *number;
}

/// The model as it is, for the shapes of the given inputs.
absl::StatusOr<std::unique_ptr<BundleSession>> LoadModel(
    const Options& options, const std::map<std::string, Tensor>& inputs, Context& context) {
  ModelOptions import;
  import.shapes = options.shapes;
  import.choose_deciding = true;
  if (import.shapes.empty()) {
    for (const auto& [name, tensor] : inputs)
      import.known_shapes.emplace_back(name, tensor.shape());
  }
  MENDEL_ASSIGN_OR_RETURN(auto session,
                          LoadModelSession(options.plan, import, options.session, context));
  context.Note(
      "note: the model runs with default algorithms; `mendel optimize` makes a faster plan");
  return session;
}

absl::StatusOr<std::unique_ptr<BundleSession>> Load(const Options& options,
                                                    const std::map<std::string, Tensor>& inputs,
                                                    Context& context) {
  if (!IsPlanFile(options.plan)) return LoadModel(options, inputs, context);
  context.Input(options.plan);
  return BundleSession::Load(options.plan, options.session);
}

absl::Status Run(const Options& options, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(auto inputs, ReadInputFiles(options.inputs, context));
  MENDEL_ASSIGN_OR_RETURN(const auto bundle, Load(options, inputs, context));
  MENDEL_ASSIGN_OR_RETURN(const size_t number, ChooseByShapes(*bundle, inputs, options, context));
  MENDEL_ASSIGN_OR_RETURN(Session* const session, bundle->Member(number));
  if (options.random_seed != 0) {  // made-up values for the inputs that were not given
    const std::vector<Tensor> random = RandomInputs(bundle->graph(number), options.random_seed);
    for (size_t k = 0; k < random.size(); ++k) inputs.emplace(session->inputs()[k].name, random[k]);
  }
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> results, session->Run(inputs));
  return WriteOutputs(*session, results, options.output_dir, context);
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("plan", options->plan, "Plan, or an ONNX model to run as it is")->required();
  app.add_option("--input", options->inputs, "Value of an input, NAME=FILE.npy")->take_all();
  app.add_option("--random-inputs", options->random_seed,
                 "Make up the inputs that are not given, from this seed");
  AddMemberOption(app, options->shapes);
  AddLibraryPathOption(app);
  app.add_option("--output-dir", options->output_dir, "Folder for one .npy file per output")
      ->required();
  app.add_option("--threads", options->session.threads,
                 "Threads (default: as the plan was tuned; of a model: physical cores)")
      ->check(CLI::PositiveNumber);
  app.add_option("--affinity", options->session.affinity,
                 "Where they run: none (the system decides), cores, or CPUs such as 0,2-3")
      ->capture_default_str();
  app.add_flag("--retune", options->session.retune,
               "Accept a plan of another machine, and use default algorithms for it");
  return [options](Context& context) { return Run(*options, context); };
}

Command Make() { return {"run", "Runs a plan or a model on .npy inputs", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::run
