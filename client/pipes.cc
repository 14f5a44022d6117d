#include "client/pipes.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/status.h"

namespace mendel {
namespace {

absl::Status CopyAll(int from, int to) {
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, "cannot read");
    if (got == 0) return absl::OkStatus();
    for (ssize_t done = 0; done < got;) {
      const ssize_t written = write(to, buffer.data() + done, static_cast<size_t>(got - done));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return absl::ErrnoToStatus(errno, "cannot write");
      done += written;
    }
  }
}

class AsideContext final : public Context {
 public:
  explicit AsideContext(Context& context) : context_(context) {}
  bool json() const override { return false; }
  nlohmann::ordered_json& facts() override { return context_.facts(); }
  void Line(const std::string& text) override { context_.Note(text); }
  void Note(const std::string& text) override { context_.Note(text); }
  void Answer(ExitCode code) override { context_.Answer(code); }
  void Input(const std::string& path) override { context_.Input(path); }

 private:
  Context& context_;
};

}  // namespace

absl::StatusOr<PipeFolder> PipeFolder::Make() {
  std::error_code code;
  std::string path = (std::filesystem::temp_directory_path(code) / "mendel-XXXXXX").string();
  if (code || mkdtemp(path.data()) == nullptr)
    return absl::ErrnoToStatus(errno, "cannot make a temporary folder");
  return PipeFolder(std::move(path));
}

PipeFolder::~PipeFolder() {
  std::error_code code;
  if (!path_.empty()) std::filesystem::remove_all(path_, code);
}

absl::Status ReadStandardInput(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return absl::ErrnoToStatus(errno, Cat("cannot write ", path));
  const absl::Status status = CopyAll(STDIN_FILENO, file);
  const bool closed = close(file) == 0;
  if (status.ok() && !closed) return absl::ErrnoToStatus(errno, Cat("cannot write ", path));
  return Annotate(status, "standard input");
}

absl::Status WriteStandardOutput(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return absl::ErrnoToStatus(errno, Cat("cannot open ", path));
  const absl::Status status = CopyAll(file, STDOUT_FILENO);
  close(file);
  return Annotate(status, "standard output");
}

absl::StatusOr<std::unique_ptr<Context>> LinesAside(Context& context) {
  if (context.json())
    return InvalidInput("standard output cannot take both the plan (-o -) and the facts (--json)");
  return std::make_unique<AsideContext>(context);
}

}  // namespace mendel
