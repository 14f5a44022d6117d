#include "client/onnxruntime/part_runner.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "onnx/interface.h"

namespace mendel::ort {
namespace {

/// The error of a call of Mendel's C interface on this thread.
absl::Status Checked(mendel_status status) {
  if (status == MENDEL_OK) return absl::OkStatus();
  const std::string message = mendel_last_error();
  if (status == MENDEL_INVALID) return absl::InvalidArgumentError(message);
  if (status == MENDEL_UNSUPPORTED) return absl::UnimplementedError(message);
  if (status == MENDEL_STOPPED) return absl::CancelledError(message);
  return absl::InternalError(message);
}

mendel_model ModelOf(const std::string& bytes) { return {nullptr, bytes.data(), bytes.size()}; }

struct FreeProgram {
  void operator()(mendel_program* program) const { mendel_program_free(program); }
};
using Program = std::unique_ptr<mendel_program, FreeProgram>;

absl::StatusOr<Program> ReadProgram(const std::string& path) {
  mendel_program* program = nullptr;
  MENDEL_RETURN_IF_ERROR(Checked(mendel_program_read(path.c_str(), &program)));
  return Program(program);
}

/// The inputs' shapes as in the option --shapes.
std::string ShapesText(const PartInputs& inputs) {
  std::string text;
  for (size_t k = 0; k < inputs.ranks.size(); ++k) {
    text += Cat(k == 0 ? "" : ",", "in", k, ":");
    for (int d = 0; d < inputs.ranks[k]; ++d) text += Cat(d == 0 ? "" : "x", inputs.shapes[k][d]);
    if (inputs.ranks[k] == 0) text += "scalar";
  }
  return text;
}

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

/// The program that a search finds for `shapes`.
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

/// Writes the plan for later sessions; a failure costs them a search, and is no error of this one.
absl::Status Store(const mendel_program* program, const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  return Checked(mendel_program_write(program, path.c_str()));
}

}  // namespace

PartRunner::PartRunner(ContextBlob blob, Settings settings, LogLine log)
    : blob_(std::move(blob)),
      model_hash_(Sha256Hex(blob_.model)),
      settings_(std::move(settings)),
      log_(std::move(log)),
      threads_(settings_.threads),
      stop_(mendel_stop_new()) {}

PartRunner::~PartRunner() {
  mendel_stop_request(stop_);
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (searcher_.joinable()) searcher_.join();
  mendel_free(plan_);
  mendel_stop_free(stop_);
}

absl::Status PartRunner::Open(const std::function<int()>& count_threads) {
  if (threads_ == 0) threads_ = count_threads();
  const mendel_model model = ModelOf(blob_.model);
  const mendel_load_options options = {sizeof(mendel_load_options), threads_, nullptr};
  MENDEL_RETURN_IF_ERROR(Checked(mendel_open_model(&model, &options, nullptr, &plan_)));
  for (const std::string& plan : blob_.plans) {
    const absl::Status adopted = AdoptBytes(plan);
    if (!adopted.ok())  // the plan is of another machine, for one; the model is there
      log_(Cat("a plan of the EPContext model is not used: ", std::string(adopted.message())));
  }
  if (settings_.budget_s <= 0) blob_ = {};
  return absl::OkStatus();
}

absl::Status PartRunner::AdoptBytes(const std::string& plan) {
  MENDEL_ASSIGN_OR_RETURN(const auto file, MemoryFile::Make(plan));
  MENDEL_ASSIGN_OR_RETURN(const Program program, ReadProgram(file->path()));
  return Adopt(program.get());
}

absl::Status PartRunner::Adopt(const mendel_program* program) {
  return Checked(mendel_adopt(plan_, program));
}

absl::Status PartRunner::Run(const PartInputs& inputs, const std::function<int()>& count_threads,
                             const MakeOutput& make_output) {
  const std::lock_guard lock(mutex_);
  if (plan_ == nullptr) MENDEL_RETURN_IF_ERROR(Open(count_threads));
  const auto select = [&] {
    return Checked(
        mendel_select_inputs(plan_, inputs.ranks.data(), inputs.shapes.data(), inputs.data.data()));
  };
  if (settings_.budget_s > 0 || !settings_.cache_dir.empty())
    MENDEL_RETURN_IF_ERROR(Improve(inputs));
  MENDEL_RETURN_IF_ERROR(select());
  const int count = mendel_output_count(plan_);
  std::vector<void*> outputs(static_cast<size_t>(count));
  for (int k = 0; k < count; ++k) {
    mendel_value value = {};
    MENDEL_RETURN_IF_ERROR(Checked(mendel_output(plan_, k, &value)));
    void*& output = outputs[static_cast<size_t>(k)];
    output = make_output(k, std::span(value.shape, static_cast<size_t>(value.rank)));
    if (output == nullptr && value.bytes > 0)
      return absl::InternalError(Cat("ONNX Runtime makes no buffer for output ", k));
  }
  return Checked(mendel_run_shapes(plan_, inputs.ranks.data(), inputs.shapes.data(),
                                   inputs.data.data(), outputs.data()));
}

absl::Status PartRunner::Improve(const PartInputs& inputs) {
  const std::string shapes = ShapesText(inputs);
  if (!seen_.insert(shapes).second) return absl::OkStatus();
  const std::string cached = CachePath(shapes);
  if (!cached.empty() && std::filesystem::exists(cached)) {
    const auto program = ReadProgram(cached);
    const absl::Status adopted = program.ok() ? Adopt(program->get()) : program.status();
    if (adopted.ok()) return adopted;
    log_(Cat(cached, " is not used and will be replaced: ", std::string(adopted.message())));
  }
  if (settings_.budget_s <= 0) return absl::OkStatus();
  if (!settings_.background) return Search(shapes);
  waiting_.push_back(shapes);
  if (!searcher_.joinable()) searcher_ = std::thread([this] { SearchLoop(); });
  changed_.notify_all();
  return absl::OkStatus();
}

std::string PartRunner::CachePath(const std::string& shapes) const {
  if (settings_.cache_dir.empty()) return "";
  const std::string key =
      Sha256Hex(Cat(model_hash_, " ", shapes, " ", threads_, " ", mendel_version()));
  return Cat(settings_.cache_dir, "/", key, ".plan");
}

absl::Status PartRunner::Search(const std::string& shapes) {
  const auto program = Optimize(blob_.model, shapes, settings_.budget_s, threads_, stop_);
  if (absl::IsCancelled(program.status())) return absl::OkStatus();
  if (!program.ok()) {
    log_(Cat("no plan was searched for ", shapes, ": ", std::string(program.status().message())));
    return absl::OkStatus();
  }
  const std::string cached = CachePath(shapes);
  if (!cached.empty()) {
    const absl::Status stored = Store(program->get(), cached);
    if (!stored.ok()) log_(Cat("the plan is not kept: ", std::string(stored.message())));
  }
  return Adopt(program->get());
}

void PartRunner::SearchLoop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
    if (closing_) return;
    const std::string shapes = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    const auto program = Optimize(blob_.model, shapes, settings_.budget_s, threads_, stop_);
    lock.lock();
    if (closing_) return;  // what a stopped search found is not kept
    lock.unlock();
    std::string failure;
    if (program.ok() && !CachePath(shapes).empty()) {
      const absl::Status stored = Store(program->get(), CachePath(shapes));
      if (!stored.ok()) failure = std::string(stored.message());
    }
    lock.lock();
    if (closing_) return;
    const absl::Status adopted = program.ok() ? Adopt(program->get()) : program.status();
    if (!adopted.ok()) failure = std::string(adopted.message());
    if (!failure.empty()) log_(Cat("the search for ", shapes, " failed: ", failure));
  }
}

absl::StatusOr<ContextBlob> PartRunner::Compiled() {
  ContextBlob blob = blob_;
  if (settings_.budget_s <= 0) return blob;
  MENDEL_ASSIGN_OR_RETURN(const ModelInterface interface, ParseInterface(blob.model));
  for (const DeclaredValue& input : interface.inputs)
    for (const DeclaredDimension& dim : input.shape)
      if (dim.size < 0 || !input.has_shape) return blob;
  MENDEL_ASSIGN_OR_RETURN(const Program program, Optimize(blob.model, "", settings_.budget_s,
                                                          threads_ == 0 ? 1 : threads_, stop_));
  char path[] = "/tmp/mendel-plan-XXXXXX";
  const int handle = mkstemp(path);
  if (handle < 0) return absl::InternalError("a temporary file for a plan cannot be made");
  absl::Status written = Checked(mendel_program_write(program.get(), path));
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
  blob.plans.push_back(std::move(plan));
  return blob;
}

}  // namespace mendel::ort
