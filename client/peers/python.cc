#include "client/peers/python.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/deadline.h"
#include "base/status.h"

extern char** environ;

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kProbeSeconds = 60;

// Answers one request {"modules": [..]} with the version or the error of each.
constexpr char kProbe[] = R"py(
import importlib, importlib.metadata, json, sys
versions, missing = {}, {}
for name in json.loads(sys.stdin.readline())["modules"]:
    try:
        importlib.import_module(name)
        versions[name] = importlib.metadata.version(name)
    except Exception as error:
        missing[name] = f"{type(error).__name__}: {error}"
print(json.dumps({"versions": versions, "missing": missing}), flush=True)
)py";

/// The environment of this process with `extra` in front.
std::vector<std::string> Environment(const std::map<std::string, std::string>& extra) {
  std::vector<std::string> words;
  for (const auto& [name, value] : extra) words.push_back(Cat(name, "=", value));
  for (char** word = environ; *word != nullptr; ++word) {
    const std::string text = *word;
    if (extra.count(text.substr(0, text.find('='))) == 0) words.push_back(text);
  }
  return words;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

absl::StatusOr<Python> ProbePython(const std::string& path,
                                   const std::vector<std::string>& modules) {
  MENDEL_ASSIGN_OR_RETURN(const auto program, PythonProgram::Start(path, kProbe, {}, {}));
  MENDEL_ASSIGN_OR_RETURN(const Json answer, program->Ask({{"modules", modules}}, kProbeSeconds));
  return Python{path, answer["versions"].get<std::map<std::string, std::string>>(),
                answer["missing"].get<std::map<std::string, std::string>>()};
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += Cat(text.empty() ? "" : " or ", word);
  return text;
}

}  // namespace

void AddPythonOption(CLI::App& app, const std::string& option, std::string& path) {
  app.add_option(option, path, "Python with the other runtimes (default: python3 of the PATH)")
      ->envname("MENDEL_PYTHON");
}

absl::StatusOr<Python> FindPython(const std::string& path, const std::string& option,
                                  const std::vector<std::string>& modules) {
  std::vector<std::string> candidates = {"python3", "/usr/bin/python3"};
  if (!path.empty()) candidates = {path};
  std::string reasons;
  for (const std::string& candidate : candidates) {
    absl::StatusOr<Python> found = ProbePython(candidate, modules);
    if (found.ok() && !found->versions.empty()) return found;
    reasons += Cat(reasons.empty() ? "" : "; ", candidate, ": ");
    if (!found.ok()) {
      reasons += std::string(found.status().message());
    } else {
      for (const std::string& module : modules)
        reasons += Cat(module == modules[0] ? "" : ", ", found->missing[module]);
    }
  }
  return absl::NotFoundError(Cat("found no Python with ", Joined(modules), " (", reasons,
                                 "); install it there with pip, or give ", option, " PATH"));
}

absl::StatusOr<std::unique_ptr<PythonProgram>> PythonProgram::Start(
    const std::string& python, const std::string& script, const std::vector<std::string>& arguments,
    const std::map<std::string, std::string>& environment) {
  std::unique_ptr<PythonProgram> program(new PythonProgram());
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  program->input_ = in[1];
  if (pipe2(out, O_CLOEXEC) != 0) {
    const int error = errno;
    close(in[0]);
    return absl::ErrnoToStatus(error, "cannot make a pipe");
  }
  program->output_ = out[0];
  program->errors_ = std::tmpfile();
  std::vector<std::string> words = {python, "-c", script};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = Environment(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  if (program->errors_ != nullptr)
    posix_spawn_file_actions_adddup2(&actions, fileno(program->errors_), STDERR_FILENO);
  const int error = posix_spawnp(&program->process_, python.c_str(), &actions, nullptr,
                                 Pointers(words).data(), Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  if (error != 0) {
    program->process_ = -1;
    return absl::ErrnoToStatus(error, Cat("cannot run ", python));
  }
  return program;
}

PythonProgram::~PythonProgram() {
  if (input_ >= 0) close(input_);
  if (process_ > 0) {
    const Stopwatch clock;
    while (waitpid(process_, nullptr, WNOHANG) == 0) {
      if (clock.Seconds() > 2) {
        kill(process_, SIGKILL);
        waitpid(process_, nullptr, 0);
        break;
      }
      usleep(2000);
    }
  }
  if (output_ >= 0) close(output_);
  if (errors_ != nullptr) std::fclose(errors_);
}

absl::StatusOr<Json> PythonProgram::Ask(const Json& request, double seconds) {
  const std::string line = request.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t count = write(input_, line.data() + sent, line.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;  // the script ended: NextLine has the reason
    sent += static_cast<size_t>(count);
  }
  const Stopwatch clock;
  while (true) {
    MENDEL_ASSIGN_OR_RETURN(const std::string text, NextLine(seconds - clock.Seconds()));
    Json answer = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (answer.is_object()) return answer;
  }
}

absl::StatusOr<std::string> PythonProgram::NextLine(double seconds) {
  const Stopwatch clock;
  while (true) {
    const size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    const double left = seconds - clock.Seconds();
    pollfd ready = {output_, POLLIN, 0};
    const int count =
        left > 0 ? poll(&ready, 1, static_cast<int>(1e3 * std::min(left, 1e5)) + 1) : 0;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::DeadlineExceededError("the Python program gave no answer in time");
    char buffer[65536];
    const ssize_t size = read(output_, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return absl::UnavailableError(LastError());
    unread_.append(buffer, static_cast<size_t>(size));
  }
}

std::string PythonProgram::LastError() {
  constexpr size_t kMost = 300;
  std::string last = "the Python program ended without an answer";
  if (errors_ == nullptr) return last;
  std::rewind(errors_);
  char buffer[4096];
  while (std::fgets(buffer, sizeof buffer, errors_) != nullptr) {
    std::string line = buffer;
    while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) last = line.substr(0, kMost);
  }
  return last;
}

}  // namespace mendel
