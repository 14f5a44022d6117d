// A command of `mendel` is one value registered by its file client/commands/<name>.cc.
//
// A command declares its options and returns the action. The action puts every fact into
// `Context::facts` (printed once, as JSON, with --json) and into lines for people (left out with
// --json): the same facts twice. It never prints itself and never exits; its status decides the
// exit code (exit_codes.h).
#ifndef MENDEL_CLIENT_COMMAND_H_
#define MENDEL_CLIENT_COMMAND_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "client/exit_codes.h"

namespace CLI {
class App;
}

namespace mendel {

class Context {
 public:
  virtual ~Context() = default;
  /// True when the caller wants JSON.
  virtual bool json() const = 0;
  /// Findings of the command; printed at the end even when the action returns an error (with the
  /// error in it).
  virtual nlohmann::ordered_json& facts() = 0;
  /// A line on standard output, for people.
  virtual void Line(const std::string& text) = 0;
  /// A line on standard error: notices and progress, with --json too.
  virtual void Note(const std::string& text) = 0;
  /// The exit code of a successful command whose answer is not "good".
  virtual void Answer(ExitCode code) = 0;
  /// Files that belong into the reproduction bundle if the command ends with an internal error.
  virtual void Input(const std::string& path) = 0;
};

using Action = std::function<absl::Status(Context& context)>;

struct Command {
  std::string_view name;
  /// One line for `mendel --help`.
  std::string_view summary;
  /// Declares options on the subcommand; variables that they write must be owned by the returned
  /// action (std::make_shared).
  Action (*setup)(CLI::App& app) = nullptr;
};

/// Sorted by name.
std::span<const Command* const> AllCommands();

struct CommandRegistrar {
  explicit CommandRegistrar(Command (*make)());
};
#define MENDEL_REGISTER_COMMAND(make) const ::mendel::CommandRegistrar command_registrar(make)

}  // namespace mendel

#endif  // MENDEL_CLIENT_COMMAND_H_
