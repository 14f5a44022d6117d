// Programs of Python in processes of their own: the way to runtimes that Mendel does not link.
#ifndef MENDEL_CLIENT_PEERS_PYTHON_H_
#define MENDEL_CLIENT_PEERS_PYTHON_H_

#include <sys/types.h>

#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace mendel {

struct Python {
  std::string path;
  std::map<std::string, std::string> versions;  ///< of the modules found
  std::map<std::string, std::string> missing;   ///< the error of each other module
};

/// Declares `option` for the path of a Python, which MENDEL_PYTHON sets as well. `path` must
/// outlive the command line's parsing.
void AddPythonOption(CLI::App& app, const std::string& option, std::string& path);

/// A Python that imports at least one of `modules`: `path` if it is not empty, else the first among
/// those of $PATH and /usr/bin. NotFound lists what was tried with the reasons; `option` is named
/// as the way out.
absl::StatusOr<Python> FindPython(const std::string& path, const std::string& option,
                                  const std::vector<std::string>& modules);

/// A script that reads lines of JSON from its standard input and answers with lines of JSON.
class PythonProgram {
 public:
  /// Starts `script` with `arguments` and these additional variables of the environment.
  static absl::StatusOr<std::unique_ptr<PythonProgram>> Start(
      const std::string& python, const std::string& script,
      const std::vector<std::string>& arguments,
      const std::map<std::string, std::string>& environment);
  PythonProgram(const PythonProgram&) = delete;
  PythonProgram& operator=(const PythonProgram&) = delete;
  /// Closes the script's input, and ends it if it does not end by itself within two seconds.
  ~PythonProgram();

  /// Sends `request` and waits for the answer. Other lines of the script's output are skipped.
  /// Unavailable with the last line of its errors when the script ended; DeadlineExceeded after
  /// `seconds`.
  absl::StatusOr<nlohmann::ordered_json> Ask(const nlohmann::ordered_json& request, double seconds);

 private:
  PythonProgram() = default;
  std::string LastError();
  absl::StatusOr<std::string> NextLine(double seconds);

  pid_t process_ = -1;
  int input_ = -1, output_ = -1;
  std::FILE* errors_ = nullptr;
  std::string unread_;
};

}  // namespace mendel

#endif  // MENDEL_CLIENT_PEERS_PYTHON_H_
