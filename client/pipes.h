// `-` as a file of the commands that talk to a server: standard input for a model, standard output
// for a plan.
#ifndef MENDEL_CLIENT_PIPES_H_
#define MENDEL_CLIENT_PIPES_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/command.h"

namespace mendel {

/// A folder of its own for what comes or goes through a pipe; removed at the end.
class PipeFolder {
 public:
  static absl::StatusOr<PipeFolder> Make();
  PipeFolder(PipeFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  PipeFolder& operator=(PipeFolder&& other) = delete;
  ~PipeFolder();
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit PipeFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Copies standard input, to its end, to a new file.
absl::Status ReadStandardInput(const std::string& path);
/// Copies a file to standard output.
absl::Status WriteStandardOutput(const std::string& path);

/// `context` with its lines on standard error: standard output belongs to a file. InvalidArgument
/// with --json, which needs it, too.
absl::StatusOr<std::unique_ptr<Context>> LinesAside(Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_PIPES_H_
