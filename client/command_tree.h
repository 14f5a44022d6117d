// The command line as data: what shell completion and the manual page are written from, so that
// they cannot fall behind it.
#ifndef MENDEL_CLIENT_COMMAND_TREE_H_
#define MENDEL_CLIENT_COMMAND_TREE_H_

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mendel {

struct OptionFacts {
  std::vector<std::string> names;  ///< "-o", "--output"; empty for positional arguments
  std::string value;               ///< word for the value ("TEXT", "model"); empty: takes none
  std::vector<std::string> choices;
  std::string description;
  std::string default_value;
  std::string environment;
  bool required = false;
};

struct CommandFacts {
  std::string name;
  std::string description;
  std::string footer;
  std::vector<OptionFacts> options;
  std::vector<OptionFacts> positionals;
  std::vector<CommandFacts> commands;
};

CommandFacts FactsOf(const CLI::App& app);

/// Scripts for the shells, and the manual page (roff, section 1).
std::string BashCompletion(const CommandFacts& root);
std::string ZshCompletion(const CommandFacts& root);
std::string FishCompletion(const CommandFacts& root);
std::string ManualPage(const CommandFacts& root, const std::string& version);

}  // namespace mendel

#endif  // MENDEL_CLIENT_COMMAND_TREE_H_
