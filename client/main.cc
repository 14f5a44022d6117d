// The `mendel` command: reads the command line, runs one command (client/commands/), prints, and
// exits.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/status.h"
#include "client/bundle.h"
#include "client/command.h"
#include "client/exit_codes.h"
#include "client/unknown_name.h"
#include "client/version.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

/// Names in facts come from models and need not be UTF-8.
std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

class ConsoleContext final : public Context {
 public:
  bool json() const override { return json_; }
  Json& facts() override { return facts_; }
  void Line(const std::string& text) override {
    if (!json_) std::fprintf(stdout, "%s\n", text.c_str());
  }
  void Note(const std::string& text) override { std::fprintf(stderr, "%s\n", text.c_str()); }
  void Answer(ExitCode code) override { answer_ = code; }
  void Input(const std::string& path) override { inputs_.push_back(path); }

  bool& json_flag() { return json_; }
  ExitCode answer() const { return answer_; }
  const std::vector<std::string>& inputs() const { return inputs_; }

 private:
  bool json_ = false;
  ExitCode answer_ = kExitGood;
  Json facts_ = Json::object();
  std::vector<std::string> inputs_;
};

/// Reports an error on standard error and, with --json, in the facts.
void ReportError(ConsoleContext& context, const absl::Status& status,
                 const std::vector<std::string>& command_line) {
  context.Note(Cat("mendel: ", std::string(status.message())));
  Json error = {{"code", absl::StatusCodeToString(status.code())},
                {"message", std::string(status.message())}};
  if (ExitCodeOf(status) == kExitInternal) {
    const absl::StatusOr<std::string> bundle =
        WriteBundle(".", command_line, context.inputs(), status);
    context.Note(
        bundle.ok()
            ? Cat("mendel: this is a bug; please report it with the files in ", *bundle)
            : Cat("mendel: this is a bug; no bundle: ", std::string(bundle.status().message())));
    if (bundle.ok()) error["bundle"] = *bundle;
  }
  context.facts()["error"] = std::move(error);
}

int Finish(ConsoleContext& context, const absl::Status& status) {
  if (context.json()) std::fprintf(stdout, "%s\n", Dump(context.facts()).c_str());
  if (std::fflush(stdout) != 0 && status.ok()) {
    context.Note("mendel: cannot write to standard output");
    return kExitInputOutput;
  }
  return status.ok() ? context.answer() : ExitCodeOf(status);
}

int Main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> command_line(argv, argv + argc);
  CLI::App app("Optimizes ONNX models with mutants that it proves and corrects.", "mendel");
  app.set_version_flag("--version", [] {
    std::string text = VersionText();
    if (!text.empty()) text.pop_back();
    return text;
  });
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 good; 1 the answer is no; 2 bad input, mismatch or unsupported; 3 undecided; "
      "4 internal error (a\n"
      "reproduction bundle is written); 5 input/output failure; 130 interrupted with nothing "
      "saved.");
  ConsoleContext context;
  std::map<const CLI::App*, Action> actions;
  for (const Command* command : AllCommands()) {
    CLI::App* sub = app.add_subcommand(std::string(command->name), std::string(command->summary));
    sub->add_flag("--json", context.json_flag(), "Print the same facts as one JSON object");
    actions[sub] = command->setup(*sub);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (const std::string unknown = UnknownName(app, command_line); !unknown.empty()) {
      context.Note(Cat("mendel: ", unknown));
      return kExitBadInput;
    }
    // Help and version are "errors" of exit code 0.
    return app.exit(error) == 0 ? kExitGood : kExitBadInput;
  }
  const absl::Status status = actions[app.get_subcommands().front()](context);
  if (!status.ok()) ReportError(context, status, command_line);
  return Finish(context, status);
}

}  // namespace
}  // namespace mendel

/// Settings of jemalloc, read before main. Freed memory goes back to the system after a second,
/// large blocks as well. One arena: with more, what one thread freed would not serve the next one,
/// and a server's memory would grow under load for long.
extern "C" const char* malloc_conf;
const char* malloc_conf = "narenas:1,dirty_decay_ms:1000,oversize_threshold:0";

int main(int argc, char** argv) {
  // `mendeld ARGUMENTS` is `mendel serve ARGUMENTS`.
  std::vector<char*> words(argv, argv + argc);
  const std::string_view name = argc > 0 ? argv[0] : "";
  std::string serve = "serve";
  if (name.substr(name.rfind('/') + 1) == "mendeld") words.insert(words.begin() + 1, serve.data());
  // `mendel refit` is the old name of `mendel rebind`, kept for version 0.1.
  std::string rebind = "rebind";
  if (words.size() > 1 && std::string_view(words[1]) == "refit") words[1] = rebind.data();
  return mendel::Main(static_cast<int>(words.size()), words.data());
}
