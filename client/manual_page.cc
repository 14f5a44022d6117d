// The manual page of `mendel`, in man(7)'s macros.
#include <cctype>

#include "base/status.h"
#include "client/command_tree.h"

namespace mendel {
namespace {

/// Text that means itself to roff: hyphens are minus signs, no line starts a request.
std::string Escaped(const std::string& text) {
  std::string escaped;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '-') {
      escaped += "\\-";
    } else if (c == '\\') {
      escaped += "\\e";
    } else {
      escaped += c;
    }
    line_start = c == '\n';
  }
  return escaped;
}

std::string Term(const OptionFacts& option) {
  std::string term;
  for (const std::string& name : option.names)
    term += Cat(term.empty() ? "" : ", ", "\\fB", Escaped(name), "\\fR");
  if (!option.value.empty())
    term += Cat(term.empty() ? "" : " ", "\\fI", Escaped(option.value), "\\fR");
  return term;
}

std::string Entry(const OptionFacts& option) {
  std::string text = option.description;
  if (!option.choices.empty()) {
    std::string choices;
    for (const std::string& choice : option.choices)
      choices += (choices.empty() ? "" : ", ") + choice;
    text += Cat(" (one of: ", choices, ")");
  }
  if (!option.default_value.empty()) text += Cat(" [", option.default_value, "]");
  if (!option.environment.empty()) text += Cat("; environment: ", option.environment);
  return Cat(".TP\n", Term(option), "\n", Escaped(text), ".\n");
}

std::string CommandText(const CommandFacts& command) {
  std::string usage = Cat("\\fBmendel ", Escaped(command.name), "\\fR");
  for (const OptionFacts& positional : command.positionals) {
    const std::string name = Cat("\\fI", Escaped(positional.value), "\\fR");
    usage += positional.required ? Cat(" ", name) : Cat(" [", name, "]");
  }
  std::string text =
      Cat(".SS ", usage, " [\\fIoptions\\fR]\n", Escaped(command.description), ".\n");
  for (const OptionFacts& positional : command.positionals) text += Entry(positional);
  for (const OptionFacts& option : command.options) {
    if (option.names.back() != "--help") text += Entry(option);
  }
  return text;
}

}  // namespace

std::string ManualPage(const CommandFacts& root, const std::string& version) {
  std::string text = Cat(".TH MENDEL 1 \"\" \"mendel ", Escaped(version),
                         "\" \"User Commands\"\n.SH NAME\nmendel \\- optimizes ONNX models with ",
                         "mutants that it proves and corrects\n.SH SYNOPSIS\n\\fBmendel\\fR "
                         "\\fIcommand\\fR [\\fIoptions\\fR]\n.SH DESCRIPTION\n",
                         Escaped(root.description),
                         "\n.PP\nEvery command takes \\fB\\-\\-help\\fR.\n.SH COMMANDS\n");
  for (const CommandFacts& command : root.commands) text += CommandText(command);
  text += Cat(".SH EXIT STATUS\n", Escaped(root.footer), "\n");
  return text;
}

}  // namespace mendel
