// mendel completion bash|zsh|fish|man: scripts for shells and the manual page, out of the command
// line's own description.

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "client/command.h"
#include "client/command_tree.h"
#include "client/version.h"

namespace mendel::commands::completion {
namespace {

absl::Status Run(const std::string& kind, const CLI::App& app, Context& context) {
  const CommandFacts root = FactsOf(*app.get_parent());
  std::string text;
  if (kind == "bash") text = BashCompletion(root);
  if (kind == "zsh") text = ZshCompletion(root);
  if (kind == "fish") text = FishCompletion(root);
  if (kind == "man") text = ManualPage(root, ProgramVersion().version);
  context.facts()["text"] = text;
  text.pop_back();  // Line ends it
  context.Line(text);
  return absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto kind = std::make_shared<std::string>();
  app.add_option("kind", *kind, "bash, zsh or fish; man: the manual page")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
  return [kind, &app](Context& context) { return Run(*kind, app, context); };
}

Command Make() { return {"completion", "Prints shell completion, or the manual page", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::completion
