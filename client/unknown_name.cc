#include "client/unknown_name.h"

#include <algorithm>

#include "base/status.h"
#include "client/command_tree.h"

namespace mendel {
namespace {

std::string List(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += Cat(text.empty() ? "" : ", ", name);
  return text;
}

std::vector<std::string> OptionNames(const CommandFacts& command) {
  std::vector<std::string> names;
  for (const OptionFacts& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

}  // namespace

std::string UnknownName(const CLI::App& app, const std::vector<std::string>& words) {
  const CommandFacts root = FactsOf(app);
  if (words.size() < 2) return "";
  std::vector<std::string> commands;
  const CommandFacts* command = nullptr;
  for (const CommandFacts& one : root.commands) {
    commands.push_back(one.name);
    if (one.name == words[1]) command = &one;
  }
  if (command == nullptr) {
    if (words[1].starts_with("-")) return "";
    return Cat("there is no command '", words[1], "'; the commands are ", List(commands));
  }
  const std::vector<std::string> names = OptionNames(*command);
  for (size_t k = 2; k < words.size() && words[k] != "--"; ++k) {
    const std::string name = words[k].substr(0, words[k].find('='));
    if (!name.starts_with("--") || std::count(names.begin(), names.end(), name) != 0) continue;
    return Cat(command->name, " has no option '", name, "'; its options are ", List(names));
  }
  return "";
}

}  // namespace mendel
