// mendel serve: the server in the foreground (also as `mendeld`).

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/status.h"
#include "client/command.h"
#include "client/version.h"
#include "mutator/rule.h"
#include "onnx/import.h"
#include "server/daemon.h"
#include "server/jobs/devices.h"
#include "server/options.h"

namespace mendel::commands::serve {
namespace {

struct ServeFlags {
  std::map<std::string, std::string> values;  ///< values of the flags that were given
  std::string config;
  bool check = false;
};

std::optional<std::string> Variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

absl::StatusOr<std::map<std::string, std::string>> ReadConfig(const std::string& path) {
  if (path.empty()) return std::map<std::string, std::string>();
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError(Cat("cannot read ", path));
  absl::StatusOr<std::map<std::string, std::string>> values = server::ParseConfig(text.str());
  if (!values.ok()) return Annotate(values.status(), path);
  return values;
}

absl::Status Serve(const ServeFlags& flags, Context& context) {
  const std::string config =
      flags.config.empty() ? Variable("MENDEL_CONFIG").value_or("") : flags.config;
  MENDEL_ASSIGN_OR_RETURN(const auto file, ReadConfig(config));
  MENDEL_ASSIGN_OR_RETURN(server::ServerOptions options,
                          server::ResolveOptions(flags.values, &Variable, file));
  if (!flags.check) {
    const Version version = ProgramVersion();
    options.runner.devices = server::DevicesOfThisMachine();
    options.runner.version = VersionLine();
    for (const Rule* rule : AllRules()) options.runner.rules.emplace_back(rule->name);
    std::sort(options.runner.rules.begin(), options.runner.rules.end());
    options.runner.check_shapes = [](std::string_view shapes) {
      return ParseShapes(shapes).status();
    };
    return server::Serve(options, {version.version, version.commit});
  }
  MENDEL_RETURN_IF_ERROR(server::CheckConfig(options));
  for (const server::OptionSpec& option : server::OptionTable(options)) {
    context.facts()["options"][option.name] = server::ValueText(option);
    context.Line(Cat(option.name, " = ", server::ValueText(option)));
  }
  return absl::OkStatus();
}

void AddOptions(CLI::App& app, ServeFlags& flags) {
  server::ServerOptions defaults;
  for (const server::OptionSpec& option : server::OptionTable(defaults)) {
    const std::string name = option.name;
    const std::string text = server::ValueText(option);
    const std::string help = text.empty() ? option.help : Cat(option.help, " [", text, "]");
    if (std::holds_alternative<bool*>(option.value)) {
      // "--grpc-use-ssl" and "--grpc-use-ssl true" alike.
      app.add_option_function<std::string>(
             "--" + name,
             [&flags, name](const std::string& value) {
               flags.values[name] = value.empty() ? "true" : value;
             },
             help)
          ->expected(0, 1)
          ->type_name("");
    } else {
      app.add_option_function<std::string>(
          "--" + name, [&flags, name](const std::string& value) { flags.values[name] = value; },
          help);
    }
  }
  app.add_option("--config", flags.config,
                 "File of 'key = value' lines; keys are these options (docs/service.md)");
  app.add_flag("--check-config", flags.check, "Check everything, print the options, and exit");
}

Command Make() {
  return {"serve", "Serves optimization and verification jobs over gRPC",
          [](CLI::App& app) -> Action {
            auto flags = std::make_shared<ServeFlags>();
            AddOptions(app, *flags);
            return [flags](Context& context) { return Serve(*flags, context); };
          }};
}

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::serve
