// Completion scripts: options, values out of a fixed set, and file names for everything else.
#include <algorithm>

#include "base/status.h"
#include "client/command_tree.h"

namespace mendel {
namespace {

std::string Joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::vector<std::string> NamesOf(const std::vector<CommandFacts>& commands) {
  std::vector<std::string> names;
  for (const CommandFacts& command : commands) names.push_back(command.name);
  return names;
}

/// In single quotes for a POSIX shell or fish.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// Zsh's specifications give these characters a meaning.
std::string ZshEscaped(const std::string& text) {
  std::string escaped;
  for (const char c : text)
    escaped += std::string(std::string("[]:\\").find(c) != std::string::npos ? "\\" : "") + c;
  return escaped;
}

std::string ZshAction(const OptionFacts& option) {
  return option.choices.empty() ? "_files" : Cat("(", Joined(option.choices, " "), ")");
}

}  // namespace

std::string BashCompletion(const CommandFacts& root) {
  std::string values;
  std::string words;
  for (const CommandFacts& command : root.commands) {
    std::vector<std::string> offered;
    for (const OptionFacts& option : command.options) {
      offered.insert(offered.end(), option.names.begin(), option.names.end());
      if (option.value.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) patterns.push_back(Cat(command.name, ":", name));
      const std::string reply = option.choices.empty() ? "return"
                                                       : Cat("COMPREPLY=($(compgen -W ",
                                                             Quoted(Joined(option.choices, " ")),
                                                             " -- \"$word\")); return");
      values += Cat("    ", Joined(patterns, "|"), ") ", reply, " ;;\n");
    }
    for (const OptionFacts& positional : command.positionals) {
      offered.insert(offered.end(), positional.choices.begin(), positional.choices.end());
    }
    words += Cat("    ", command.name, ") words=", Quoted(Joined(offered, " ")), " ;;\n");
  }
  return Cat("# bash completion of mendel; load with: source <(mendel completion bash)\n",
             "_mendel() {\n"
             "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} "
             "command=${COMP_WORDS[1]} words\n"
             "  COMPREPLY=()\n"
             "  if ((COMP_CWORD == 1)); then\n"
             "    COMPREPLY=($(compgen -W ",
             Quoted(Joined(NamesOf(root.commands), " ") + " --help --version"),
             " -- \"$word\"))\n    return\n  fi\n  case $command:$before in\n", values,
             "  esac\n  case $command in\n", words,
             "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\ncomplete -o default "
             "-F _mendel mendel\n");
}

std::string ZshCompletion(const CommandFacts& root) {
  std::string commands;
  std::string cases;
  for (const CommandFacts& command : root.commands) {
    commands += Cat(
        "    ", Quoted(Cat(ZshEscaped(command.name), ":", ZshEscaped(command.description))), "\n");
    cases += Cat("    ", command.name, ")\n      _arguments -s");
    for (const OptionFacts& option : command.options) {
      for (const std::string& name : option.names) {
        const std::string value =
            option.value.empty() ? "" : Cat(":", ZshEscaped(option.value), ":", ZshAction(option));
        cases += Cat(" \\\n        ",
                     Quoted(Cat("*", name, "[", ZshEscaped(option.description), "]", value)));
      }
    }
    for (const OptionFacts& positional : command.positionals) {
      cases += Cat(" \\\n        ",
                   Quoted(Cat(":", ZshEscaped(positional.value), ":", ZshAction(positional))));
    }
    cases += "\n      ;;\n";
  }
  return Cat(
      "#compdef mendel\n# zsh completion of mendel; put it as _mendel into a folder of "
      "$fpath\n_mendel() {\n  local -a "
      "commands=(\n",
      commands,
      "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n  local "
      "command=$words[2]\n",
      "  shift words\n  ((CURRENT--))\n  case $command in\n", cases,
      "  esac\n}\ncompdef _mendel mendel\n");
}

std::string FishCompletion(const CommandFacts& root) {
  std::string text = "# fish completion of mendel; load with: mendel completion fish | source\n";
  for (const CommandFacts& command : root.commands) {
    text += Cat("complete -c mendel -n __fish_use_subcommand -f -a ", command.name, " -d ",
                Quoted(command.description), "\n");
    const std::string start =
        Cat("complete -c mendel -n '__fish_seen_subcommand_from ", command.name, "'");
    for (const OptionFacts& option : command.options) {
      text += start;
      for (const std::string& name : option.names) {
        const bool is_long = name.starts_with("--");
        text += Cat(is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1));
      }
      if (!option.value.empty())
        text +=
            option.choices.empty() ? " -r" : Cat(" -x -a ", Quoted(Joined(option.choices, " ")));
      text += Cat(" -d ", Quoted(option.description), "\n");
    }
    for (const OptionFacts& positional : command.positionals) {
      if (!positional.choices.empty())
        text += Cat(start, " -f -a ", Quoted(Joined(positional.choices, " ")), "\n");
    }
  }
  return text;
}

}  // namespace mendel
