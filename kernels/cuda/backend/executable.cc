#include "kernels/cuda/backend/executable.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/backend/buffer_checks.h"
#include "kernels/cuda/backend/context.h"
#include "kernels/cuda/backend/device_cache.h"
#include "kernels/cuda/backend/library_call.h"
#include "kernels/cuda/backend/resources.h"

namespace mendel::cuda {
namespace {

// Of cuda.h.
constexpr int kFunctionSharedBytes = 8;
constexpr unsigned kSharedWithoutAsking = 48 << 10;
constexpr unsigned kNonBlockingStream = 1;
constexpr int kThreadLocalCapture = 1;
constexpr unsigned kEventWithoutTime = 2;
constexpr unsigned kExternalEvent = 1;  // a captured record is one that others may wait for or take the time of
constexpr int kInvalidValue = 1;

class CudaExecutable final : public Executable {
 public:
  CudaExecutable(const Driver& driver, DeviceProgram program) : driver_(driver), program_(std::move(program)) {
    for (const DeviceLaunch& launch : program_.launches) steps_.push_back(launch.info);
  }
  ~CudaExecutable() override {
    if (!stream_) return;
    (void)context_.MakeCurrent();
    if (ran_elsewhere_) driver_.EventSynchronize(done_.get());  // a run on a caller's stream may be under way
  }

  absl::Status Prepare(const ImageOf& image) {
    MENDEL_RETURN_IF_ERROR(driver_.CheckUsable());
    MENDEL_RETURN_IF_ERROR(context_.Retain(driver_));
    MENDEL_RETURN_IF_ERROR(context_.MakeCurrent());
    DriverStream* stream = nullptr;
    const int made = driver_.StreamCreate(&stream, kNonBlockingStream);
    MENDEL_RETURN_IF_ERROR(Keep(driver_, made, "cuStreamCreate", stream, driver_.StreamDestroy, stream_));
    memory_.resize(program_.allocations.size());
    for (size_t k = 0; k < memory_.size(); ++k) MENDEL_RETURN_IF_ERROR(Allocate(program_.allocations[k], memory_[k]));
    MENDEL_RETURN_IF_ERROR(UploadWeights());
    MENDEL_RETURN_IF_ERROR(LoadKernels(image));
    MENDEL_RETURN_IF_ERROR(LoadCalls());
    if (program_.staging_bytes > 0) {
      void* staging = nullptr;
      const int pinned = driver_.MemHostAlloc(&staging, static_cast<size_t>(program_.staging_bytes), 0);
      MENDEL_RETURN_IF_ERROR(Keep(driver_, pinned, "cuMemHostAlloc", staging, driver_.MemFreeHost, staging_));
    }
    MENDEL_RETURN_IF_ERROR(MakeEvent(kEventWithoutTime, done_));
    MENDEL_RETURN_IF_ERROR(Capture(&CudaExecutable::Enqueue, graph_));
    return Capture(&CudaExecutable::EnqueueLaunches, launches_);
  }

  absl::Status Run(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs) override {
    MENDEL_RETURN_IF_ERROR(Begin(inputs, outputs));
    MENDEL_RETURN_IF_ERROR(Replay(graph_, stream_.get()));
    MENDEL_RETURN_IF_ERROR(Wait());
    Deliver(outputs);
    return absl::OkStatus();
  }

  /// The launches between two events, all one graph, so that no time of the host's counts; before it, writing the cache full, or a
  /// replay that warms it. A replay may reuse the inputs' memory: they are copied again.
  absl::StatusOr<double> TimeRun(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs,
                                 const std::function<void()>& evict) override {
    MENDEL_RETURN_IF_ERROR(Begin(inputs, outputs));
    MENDEL_RETURN_IF_ERROR(MakeEvents(LastEvent() + 1));
    if (!whole_) MENDEL_RETURN_IF_ERROR(Capture(&CudaExecutable::EnqueueWhole, whole_));
    MENDEL_RETURN_IF_ERROR(CopyIn());
    if (evict != nullptr) {
      MENDEL_RETURN_IF_ERROR(cache_.Fill(driver_, context_.device(), stream_.get()));
    } else {
      MENDEL_RETURN_IF_ERROR(Replay(launches_, stream_.get()));
      MENDEL_RETURN_IF_ERROR(CopyIn());
    }
    MENDEL_RETURN_IF_ERROR(Replay(whole_, stream_.get()));
    MENDEL_RETURN_IF_ERROR(CopyOut());
    MENDEL_RETURN_IF_ERROR(Wait());
    Deliver(outputs);
    return SecondsBetween(0, LastEvent());
  }

  std::string device() const override { return Cat("cuda:", context_.device()); }

  absl::Status RunOnDevice(const DeviceRun& run) override {
    MENDEL_RETURN_IF_ERROR(driver_.CheckUsable());
    MENDEL_RETURN_IF_ERROR(CheckAddresses("input", program_.inputs, run.inputs));
    MENDEL_RETURN_IF_ERROR(CheckAddresses("output", program_.outputs, run.outputs));
    ContextScope scope(driver_);
    MENDEL_RETURN_IF_ERROR(scope.Enter(context_));
    auto* stream = static_cast<DriverStream*>(run.stream);
    MENDEL_RETURN_IF_ERROR(CheckStream(stream));
    MENDEL_RETURN_IF_ERROR(AfterLastRun(stream));
    ran_elsewhere_ = true;
    const absl::Status enqueued = EnqueueOn(stream, run);
    // Also after an error: what has been put onto the stream must have ended before the next run begins.
    const int recorded = driver_.EventRecord(done_.get(), stream);
    MENDEL_RETURN_IF_ERROR(enqueued);
    MENDEL_RETURN_IF_ERROR(driver_.Check(recorded, "cuEventRecord"));
    if (run.ready_event == nullptr) return absl::OkStatus();
    return driver_.Check(driver_.EventRecord(static_cast<DriverEvent*>(run.ready_event), stream),
                         "cuEventRecord of the ready event");
  }

  const std::vector<Step>& steps() const override { return steps_; }

  absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs,
                        std::vector<double>& seconds) override {
    MENDEL_RETURN_IF_ERROR(Begin(inputs, outputs));
    MENDEL_RETURN_IF_ERROR(MakeEvents(program_.launches.size() + 1));
    if (!timed_) MENDEL_RETURN_IF_ERROR(Capture(&CudaExecutable::EnqueueTimed, timed_));
    MENDEL_RETURN_IF_ERROR(CopyIn());
    MENDEL_RETURN_IF_ERROR(Replay(timed_, stream_.get()));
    MENDEL_RETURN_IF_ERROR(CopyOut());
    MENDEL_RETURN_IF_ERROR(Wait());
    seconds.assign(program_.launches.size(), 0);
    for (size_t k = 0; k < seconds.size(); ++k) {
      MENDEL_ASSIGN_OR_RETURN(seconds[k], SecondsBetween(k, k + 1));
    }
    Deliver(outputs);
    return absl::OkStatus();
  }

  MemoryReport memory() const override {
    return {.arena_bytes = program_.arena_bytes,
            .alive_bytes = program_.alive_bytes,
            .weight_bytes = weight_bytes_,
            .scratch_bytes = 0};
  }

 private:
  absl::Status Allocate(int64_t bytes, Owned<uint64_t>& memory) {
    if (bytes == 0) return absl::OkStatus();
    uint64_t address = 0;
    const int result = driver_.MemAlloc(&address, static_cast<size_t>(bytes));
    return Annotate(Keep(driver_, result, "cuMemAlloc", address, driver_.MemFree, memory), Cat(bytes, " bytes of device memory"));
  }

  absl::Status UploadWeights() {
    weight_bytes_ = static_cast<int64_t>(program_.weights.size());
    for (const DeviceUpload& upload : program_.uploads) {
      if (upload.to.bytes == 0) continue;
      const int result = driver_.MemcpyHtoDAsync(Address(upload.to), program_.weights.data() + upload.from,
                                                 static_cast<size_t>(upload.to.bytes), stream_.get());
      MENDEL_RETURN_IF_ERROR(driver_.Check(result, "cuMemcpyHtoDAsync"));
    }
    // On this stream alone: to synchronise the context would wait for other work, and is forbidden while another thread captures.
    if (!program_.uploads.empty()) MENDEL_RETURN_IF_ERROR(Wait());
    program_.weights = {};  // the device has them
    return absl::OkStatus();
  }

  absl::Status LoadKernels(const ImageOf& image) {
    functions_.resize(program_.launches.size());
    MENDEL_ASSIGN_OR_RETURN(const auto images, CompileKernels(program_, image));
    std::map<std::string, DriverFunction*> functions;
    modules_.resize(images.size());
    for (size_t k = 0; k < images.size(); ++k) {
      DriverModule* module = nullptr;
      const int loaded = driver_.ModuleLoadData(&module, images[k].data());
      MENDEL_RETURN_IF_ERROR(Keep(driver_, loaded, "cuModuleLoadData", module, driver_.ModuleUnload, modules_[k]));
      const std::string& entry = program_.entries[k];
      MENDEL_RETURN_IF_ERROR(
          driver_.Check(driver_.ModuleGetFunction(&functions[entry], module, entry.c_str()), "cuModuleGetFunction"));
    }
    for (size_t k = 0; k < functions_.size(); ++k) {
      const DeviceLaunch& launch = program_.launches[k];
      if (launch.call != nullptr) continue;
      DriverFunction* const function = functions.at(launch.kernel);
      if (launch.shape.shared > kSharedWithoutAsking) {
        MENDEL_RETURN_IF_ERROR(driver_.Check(
            driver_.FuncSetAttribute(function, kFunctionSharedBytes, static_cast<int>(launch.shape.shared)), "cuFuncSetAttribute"));
      }
      functions_[k] = function;
    }
    return absl::OkStatus();
  }

  /// Each is made once here, on whatever lies in its memory: what a library loads for its first call, no capture allows.
  absl::Status LoadCalls() {
    calls_.resize(program_.launches.size());
    bool any = false;
    for (size_t k = 0; k < calls_.size(); ++k) {
      const DeviceLaunch& launch = program_.launches[k];
      if (launch.call == nullptr) continue;
      CallSite site{stream_.get(), {}, launch.workspace.bytes > 0 ? Address(launch.workspace) : 0};
      for (const DeviceBuffer& buffer : launch.pointers) site.pointers.push_back(Address(buffer));
      auto loaded = launch.call->Load(site, handles_);
      if (!loaded.ok()) return Annotate(loaded.status(), launch.info.name);
      calls_[k] = *std::move(loaded);
      MENDEL_RETURN_IF_ERROR(Launch(k));
      any = true;
    }
    return any ? Wait() : absl::OkStatus();
  }

  /// What `enqueue` puts onto the stream as one graph.
  absl::Status Capture(absl::Status (CudaExecutable::*enqueue)(), Owned<DriverGraphExec*>& replayed) {
    MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.StreamBeginCapture(stream_.get(), kThreadLocalCapture), "cuStreamBeginCapture"));
    const absl::Status enqueued = (this->*enqueue)();
    // Ended in any case: a stream that captures can do nothing else, not even be destroyed in peace.
    DriverGraph* captured = nullptr;
    const int ended = driver_.StreamEndCapture(stream_.get(), &captured);
    Owned<DriverGraph*> graph(captured, driver_.GraphDestroy);
    MENDEL_RETURN_IF_ERROR(enqueued);
    MENDEL_RETURN_IF_ERROR(driver_.Check(ended, "cuStreamEndCapture"));
    DriverGraphExec* exec = nullptr;
    const int made = driver_.GraphInstantiate(&exec, graph.get(), 0);
    return Keep(driver_, made, "cuGraphInstantiate", exec, driver_.GraphExecDestroy, replayed);
  }
  absl::Status Replay(const Owned<DriverGraphExec*>& graph, DriverStream* stream) {
    return driver_.Check(driver_.GraphLaunch(graph.get(), stream), "cuGraphLaunch");
  }

  /// A whole run.
  absl::Status Enqueue() {
    MENDEL_RETURN_IF_ERROR(CopyIn());
    MENDEL_RETURN_IF_ERROR(EnqueueLaunches());
    return CopyOut();
  }
  absl::Status EnqueueLaunches() {
    for (size_t k = 0; k < program_.launches.size(); ++k) MENDEL_RETURN_IF_ERROR(Launch(k));
    return absl::OkStatus();
  }

  /// Of the events, the one after the last launch.
  size_t LastEvent() const { return std::max<size_t>(1, program_.launches.size()); }
  absl::Status Record(size_t event) {
    return driver_.Check(driver_.EventRecordWithFlags(events_[event].get(), stream_.get(), kExternalEvent),
                         "cuEventRecordWithFlags");
  }

  /// The launches with an event before and one after them.
  absl::Status EnqueueWhole() {
    MENDEL_RETURN_IF_ERROR(Record(0));
    MENDEL_RETURN_IF_ERROR(EnqueueLaunches());
    return Record(LastEvent());
  }
  /// The launches with an event around each.
  absl::Status EnqueueTimed() {
    for (size_t k = 0; k <= program_.launches.size(); ++k) {
      MENDEL_RETURN_IF_ERROR(Record(k));
      if (k < program_.launches.size()) MENDEL_RETURN_IF_ERROR(Launch(k));
    }
    return absl::OkStatus();
  }

  /// That a run can be put onto the caller's stream.
  absl::Status CheckStream(DriverStream* stream) {
    int capturing = 0;
    MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.StreamIsCapturing(stream, &capturing), "cuStreamIsCapturing"));
    if (capturing != 0) return InvalidInput("the stream is being captured, and a plan's run cannot be");
    DriverContext* context = nullptr;
    MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.StreamGetCtx(stream, &context), "cuStreamGetCtx"));
    if (context == context_.get()) return absl::OkStatus();
    return InvalidInput("the stream belongs to another context than the primary one of ", device(), ", where the plan is");
  }

  /// The plan's memory is one run's at a time, on whatever streams they are.
  absl::Status AfterLastRun(DriverStream* stream) {
    return driver_.Check(driver_.StreamWaitEvent(stream, done_.get(), 0), "cuStreamWaitEvent");
  }

  absl::Status EnqueueOn(DriverStream* stream, const DeviceRun& run) {
    for (size_t k = 0; k < run.inputs.size(); ++k) {
      const DeviceCopy& input = program_.inputs[k];
      MENDEL_RETURN_IF_ERROR(CopyOnDevice("input", input, Address(input.buffer), run.inputs[k], stream));
    }
    MENDEL_RETURN_IF_ERROR(Replay(launches_, stream));
    for (size_t k = 0; k < run.outputs.size(); ++k) {
      const DeviceCopy& output = program_.outputs[k];
      MENDEL_RETURN_IF_ERROR(CopyOnDevice("output", output, run.outputs[k], Address(output.buffer), stream));
    }
    return absl::OkStatus();
  }

  absl::Status CopyOnDevice(std::string_view what, const DeviceCopy& copy, uint64_t to, uint64_t from, DriverStream* stream) {
    if (copy.buffer.bytes == 0) return absl::OkStatus();
    const int result = driver_.MemcpyDtoDAsync(to, from, static_cast<size_t>(copy.buffer.bytes), stream);
    if (result == kInvalidValue) {
      return InvalidInput(what, " '", copy.name, "' is not the address of ", copy.buffer.bytes, " bytes that ", device(),
                          " can reach");
    }
    return driver_.Check(result, "cuMemcpyDtoDAsync");
  }

  uint64_t Address(const DeviceBuffer& buffer) const {
    return memory_[buffer.allocation].get() + static_cast<uint64_t>(buffer.offset);
  }
  std::byte* Staging(const DeviceCopy& copy) const { return static_cast<std::byte*>(staging_.get()) + copy.staging; }

  absl::Status CopyIn() {
    for (const DeviceCopy& copy : program_.inputs) {
      if (copy.buffer.bytes == 0) continue;
      MENDEL_RETURN_IF_ERROR(driver_.Check(
          driver_.MemcpyHtoDAsync(Address(copy.buffer), Staging(copy), static_cast<size_t>(copy.buffer.bytes), stream_.get()),
          "cuMemcpyHtoDAsync"));
    }
    return absl::OkStatus();
  }

  absl::Status CopyOut() {
    for (const DeviceCopy& copy : program_.outputs) {
      if (copy.buffer.bytes == 0) continue;
      MENDEL_RETURN_IF_ERROR(driver_.Check(
          driver_.MemcpyDtoHAsync(Staging(copy), Address(copy.buffer), static_cast<size_t>(copy.buffer.bytes), stream_.get()),
          "cuMemcpyDtoHAsync"));
    }
    return absl::OkStatus();
  }

  absl::Status Launch(size_t k) {
    const DeviceLaunch& launch = program_.launches[k];
    if (calls_[k] != nullptr) return Annotate(calls_[k]->Enqueue(), launch.info.name);
    addresses_.clear();
    for (const DeviceBuffer& buffer : launch.pointers) addresses_.push_back(Address(buffer));
    parameters_.clear();
    for (uint64_t& address : addresses_) parameters_.push_back(&address);
    const int result = driver_.LaunchKernel(functions_[k], launch.shape.grid, 1, 1, launch.shape.block, 1, 1, launch.shape.shared,
                                            stream_.get(), parameters_.data(), nullptr);
    return Annotate(driver_.Check(result, "cuLaunchKernel"), launch.info.name);
  }

  absl::Status Begin(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs) {
    MENDEL_RETURN_IF_ERROR(CheckBuffers("input", program_.inputs, inputs));
    MENDEL_RETURN_IF_ERROR(CheckBuffers("output", program_.outputs, outputs));
    MENDEL_RETURN_IF_ERROR(driver_.CheckUsable());
    MENDEL_RETURN_IF_ERROR(context_.MakeCurrent());
    MENDEL_RETURN_IF_ERROR(AfterLastRun(stream_.get()));
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (!inputs[k].empty()) std::memcpy(Staging(program_.inputs[k]), inputs[k].data(), inputs[k].size());
    }
    return absl::OkStatus();
  }

  absl::Status Wait() { return driver_.Check(driver_.StreamSynchronize(stream_.get()), "cuStreamSynchronize"); }

  void Deliver(std::span<const std::span<std::byte>> outputs) const {
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (!outputs[k].empty()) std::memcpy(outputs[k].data(), Staging(program_.outputs[k]), outputs[k].size());
    }
  }

  absl::Status MakeEvent(unsigned flags, Owned<DriverEvent*>& event) {
    DriverEvent* handle = nullptr;
    const int made = driver_.EventCreate(&handle, flags);
    return Keep(driver_, made, "cuEventCreate", handle, driver_.EventDestroy, event);
  }
  /// At least so many that take the time.
  absl::Status MakeEvents(size_t count) {
    while (events_.size() < count) {
      Owned<DriverEvent*> event;
      MENDEL_RETURN_IF_ERROR(MakeEvent(0, event));
      events_.push_back(std::move(event));
    }
    return absl::OkStatus();
  }
  absl::StatusOr<double> SecondsBetween(size_t from, size_t to) {
    float milliseconds = 0;
    MENDEL_RETURN_IF_ERROR(
        driver_.Check(driver_.EventElapsedTime(&milliseconds, events_[from].get(), events_[to].get()), "cuEventElapsedTime"));
    return static_cast<double>(milliseconds) * 1e-3;
  }

  const Driver& driver_;
  DeviceProgram program_;
  std::vector<Step> steps_;
  int64_t weight_bytes_ = 0;
  bool ran_elsewhere_ = false;              // on a caller's stream
  std::vector<DriverFunction*> functions_;  // a launch each; null where a library is called
  std::vector<uint64_t> addresses_;
  std::vector<void*> parameters_;
  // Destroyed from the last to the first.
  Context context_;
  std::vector<Owned<uint64_t>> memory_;
  DeviceCache cache_;
  Owned<void*> staging_;
  std::vector<Owned<DriverModule*>> modules_;  ///< one a kernel
  Owned<DriverStream*> stream_;
  LibraryHandles handles_;
  std::vector<std::unique_ptr<LoadedCall>> calls_;  // a launch each; null where a kernel is launched
  std::vector<Owned<DriverEvent*>> events_;         // those that take the time
  Owned<DriverGraphExec*> graph_;                   // a whole run: copies in, launches, copies out
  Owned<DriverGraphExec*> launches_;                // the launches alone
  Owned<DriverGraphExec*> whole_;                   // these between two events; made by the first TimeRun
  Owned<DriverGraphExec*> timed_;                   // these with an event around each; made by the first RunTimed
  Owned<DriverEvent*> done_;                        // after the last run on a caller's stream
};

}  // namespace

absl::Status KeepPrimaryContext(const Driver& driver) {
  int device = 0;
  DriverContext* context = nullptr;
  MENDEL_RETURN_IF_ERROR(driver.Check(driver.DeviceGet(&device, 0), "cuDeviceGet"));
  return driver.Check(driver.DevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
}

absl::StatusOr<std::unique_ptr<Executable>> MakeExecutable(const Driver& driver, DeviceProgram program, const ImageOf& image) {
  auto executable = std::make_unique<CudaExecutable>(driver, std::move(program));
  MENDEL_RETURN_IF_ERROR(executable->Prepare(image));
  return std::unique_ptr<Executable>(std::move(executable));
}

}  // namespace mendel::cuda
