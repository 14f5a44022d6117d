// mendel step NAME [FILE]: one stage alone on a graph in text form, text in, text out.

#include <CLI/CLI.hpp>
#include <cerrno>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "client/command.h"
#include "client/stages.h"
#include "graph/text.h"

namespace mendel::commands::step {
namespace {

struct Options {
  std::string name;
  std::string file = "-";
  bool list = false;
};

absl::StatusOr<std::string> ReadText(const std::string& file) {
  if (file == "-")
    return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  std::ifstream stream(file, std::ios::binary);
  const int error = errno;
  if (!stream) return absl::ErrnoToStatus(error, Cat("cannot open ", file));
  return std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
}

absl::Status ListStages(Context& context) {
  for (const StageCommand& stage : AllStages()) {
    context.Line(Cat(stage.name, ": ", stage.summary));
    context.facts()["stages"].push_back({{"name", stage.name}, {"summary", stage.summary}});
  }
  return absl::OkStatus();
}

absl::Status RunStep(const Options& options, Context& context) {
  if (options.list) return ListStages(context);
  for (const StageCommand& stage : AllStages()) {
    if (stage.name != options.name) continue;
    if (options.file != "-") context.Input(options.file);
    MENDEL_ASSIGN_OR_RETURN(const std::string text, ReadText(options.file));
    MENDEL_ASSIGN_OR_RETURN(const Graph graph, ParseGraph(text));
    MENDEL_ASSIGN_OR_RETURN(const Graph result, stage.run(graph));
    MENDEL_RETURN_IF_ERROR(CheckGraph(result));
    std::string printed = PrintGraph(result, {.inline_limit = kMaxElements});
    const bool changed = printed != PrintGraph(graph, {.inline_limit = kMaxElements});
    context.facts() = {{"stage", stage.name},
                       {"changed", changed},
                       {"nodes", result.nodes().size()},
                       {"graph", printed}};
    printed.pop_back();
    context.Line(printed);
    return absl::OkStatus();
  }
  std::string names;
  for (const StageCommand& stage : AllStages()) names += Cat(names.empty() ? "" : ", ", stage.name);
  return InvalidInput("there is no stage '", options.name, "'; the stages are ", names);
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("name", options->name, "Stage");
  app.add_option("file", options->file, "Graph in text form; - is standard input")
      ->capture_default_str();
  app.add_flag("--list", options->list, "List the stages");
  return [options](Context& context) { return RunStep(*options, context); };
}

Command Make() {
  return {"step", "Runs one step of the pipeline alone on a graph in text form", &Setup};
}

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::step
