#include "client/onnxruntime/programs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/status.h"

namespace mendel::ort {
namespace {

/// The file of a plan's bytes in memory, by a path that lives as long as the object.
class MemoryFile {
 public:
  static absl::StatusOr<std::unique_ptr<MemoryFile>> Make(const std::string& bytes) {
    std::unique_ptr<MemoryFile> file(new MemoryFile(memfd_create("mendel-plan", MFD_CLOEXEC)));
    size_t done = 0;
    while (file->handle_ >= 0 && done < bytes.size()) {
      const ssize_t wrote = write(file->handle_, bytes.data() + done, bytes.size() - done);
      if (wrote <= 0) break;
      done += static_cast<size_t>(wrote);
    }
    if (file->handle_ < 0 || done < bytes.size())
      return absl::InternalError("a file in memory for a plan cannot be made");
    return file;
  }
  ~MemoryFile() {
    if (handle_ >= 0) close(handle_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return Cat("/proc/self/fd/", handle_); }

 private:
  explicit MemoryFile(int handle) : handle_(handle) {}
  int handle_;
};

}  // namespace

absl::Status Checked(mendel_status status) {
  if (status == MENDEL_OK) return absl::OkStatus();
  const std::string message = mendel_last_error();
  if (status == MENDEL_INVALID) return absl::InvalidArgumentError(message);
  if (status == MENDEL_UNSUPPORTED) return absl::UnimplementedError(message);
  if (status == MENDEL_STOPPED) return absl::CancelledError(message);
  return absl::InternalError(message);
}

mendel_model ModelOf(const std::string& bytes) { return {nullptr, bytes.data(), bytes.size()}; }

absl::StatusOr<Program> ReadProgram(const std::string& path) {
  mendel_program* program = nullptr;
  MENDEL_RETURN_IF_ERROR(Checked(mendel_program_read(path.c_str(), &program)));
  return Program(program);
}

absl::StatusOr<Program> ReadProgramBytes(const std::string& plan) {
  MENDEL_ASSIGN_OR_RETURN(const auto file, MemoryFile::Make(plan));
  return ReadProgram(file->path());
}

absl::StatusOr<std::string> PlanBytes(const mendel_program* program) {
  char path[] = "/tmp/mendel-plan-XXXXXX";
  const int handle = mkstemp(path);
  if (handle < 0) return absl::InternalError("a temporary file for a plan cannot be made");
  absl::Status written = Checked(mendel_program_write(program, path));
  std::string plan;
  if (written.ok()) {
    std::error_code error;
    plan.resize(std::filesystem::file_size(path, error));
    const int reader = open(path, O_RDONLY | O_CLOEXEC);
    if (reader < 0 || read(reader, plan.data(), plan.size()) != static_cast<ssize_t>(plan.size()))
      written = absl::InternalError(Cat("cannot read ", path));
    if (reader >= 0) close(reader);
  }
  close(handle);
  unlink(path);
  MENDEL_RETURN_IF_ERROR(written);
  return plan;
}

absl::StatusOr<Program> Optimize(const std::string& bytes, const std::string& shapes,
                                 double budget_s, int threads, mendel_stop* stop) {
  const mendel_model model = ModelOf(bytes);
  const std::string budget = Cat("--budget=", budget_s, "s");
  const std::string thread_option = Cat("--threads=", threads);
  const std::string shape_option = Cat("--shapes=", shapes);
  const char* options[] = {budget.c_str(), thread_option.c_str(),
                           shapes.empty() ? nullptr : shape_option.c_str(), nullptr};
  const mendel_call call = {sizeof(mendel_call), options, nullptr, nullptr, stop};
  mendel_program* program = nullptr;
  MENDEL_RETURN_IF_ERROR(Checked(mendel_optimize(&model, &call, &program)));
  return Program(program);
}

absl::Status Store(const mendel_program* program, const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  return Checked(mendel_program_write(program, path.c_str()));
}

}  // namespace mendel::ort
