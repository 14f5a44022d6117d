#include "client/command_tree.h"

#include <CLI/CLI.hpp>

#include "base/status.h"

namespace mendel {
namespace {

/// "a,b" between the braces that CLI11 appends to a type's name for IsMember ("TEXT:{a,b}"), or of
/// a map ("value in {a->0,b->1}").
std::vector<std::string> ChoicesOf(const std::string& type) {
  std::vector<std::string> choices;
  const size_t open = type.find('{');
  const size_t close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::string word;
  for (const char c : type.substr(open + 1, close - open - 1) + ",") {
    if (c != ',') {
      word += c;
      continue;
    }
    word = word.substr(0, word.find("->"));
    // Numbers of a map's values are the same choices once more.
    if (!word.empty() && word.find_first_not_of("0123456789") != std::string::npos)
      choices.push_back(word);
    word.clear();
  }
  return choices;
}

OptionFacts FactsOf(const CLI::Option& option) {
  OptionFacts facts;
  for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() > 0) {
    facts.value = facts.names.empty() ? option.get_name() : type.substr(0, type.find(':'));
    facts.choices = ChoicesOf(type);
    if (facts.value.empty() || facts.value.find_first_of(" {") != std::string::npos)
      facts.value = "TEXT";
  }
  facts.description = option.get_description();
  facts.default_value = option.get_default_str();
  facts.environment = option.get_envname();
  facts.required = option.get_required();
  return facts;
}

}  // namespace

CommandFacts FactsOf(const CLI::App& app) {
  CommandFacts facts;
  facts.name = app.get_name();
  facts.description = app.get_description();
  facts.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    OptionFacts one = FactsOf(*option);
    (one.names.empty() ? facts.positionals : facts.options).push_back(std::move(one));
  }
  for (const CLI::App* command : app.get_subcommands(nullptr))
    facts.commands.push_back(FactsOf(*command));
  return facts;
}

}  // namespace mendel
