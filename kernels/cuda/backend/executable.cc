#include "kernels/cuda/backend/executable.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/backend/buffer_checks.h"
#include "kernels/cuda/backend/context.h"
#include "kernels/cuda/backend/device_cache.h"
#include "kernels/cuda/backend/graph_capture.h"
#include "kernels/cuda/backend/launch_order.h"
#include "kernels/cuda/backend/loaded_program.h"
#include "kernels/cuda/backend/order_choice.h"
#include "kernels/cuda/backend/resources.h"

namespace mendel::cuda {
namespace {

// Constants of cuda.h.
constexpr unsigned kEventWithoutTime = 2;
/// Other streams may wait for a captured record with this flag, and its time can be read.
constexpr unsigned kExternalEvent = 1;
constexpr int kInvalidValue = 1;

class CudaExecutable final : public Executable {
 public:
  CudaExecutable(const Driver& driver, DeviceProgram program)
      : driver_(driver), loaded_(driver, std::move(program)) {
    for (const DeviceLaunch& launch : program_.launches) steps_.push_back(launch.info);
    if (program_.order == LaunchOrder::kBranches)
      dependencies_ = DependenciesOf(UsesOfLaunches(program_));
    branches_ = !IsChain(dependencies_);
  }
  ~CudaExecutable() override {
    if (loaded_.stream() == nullptr) return;
    (void)context_.MakeCurrent();
    if (ran_elsewhere_)
      driver_.EventSynchronize(done_.get());  // a run on a caller's stream may be under way
  }

  absl::Status Load(const ImageOf& image) {
    MENDEL_RETURN_IF_ERROR(driver_.CheckUsable());
    MENDEL_RETURN_IF_ERROR(Enter());
    return loaded_.Load(image);
  }
  /// Another order of the program that `other` has loaded.
  absl::Status LoadLike(const CudaExecutable& other) {
    MENDEL_RETURN_IF_ERROR(Enter());
    return loaded_.LoadLike(other.loaded_);
  }

  /// Seconds of the launches on inputs that are zero. The program must be loaded, but need not be
  /// ready to run.
  absl::StatusOr<double> TimeOnZeros() {
    MENDEL_RETURN_IF_ERROR(CaptureWhole());
    for (const DeviceCopy& input : program_.inputs) {
      if (input.buffer.bytes == 0) continue;
      const int filled =
          driver_.MemsetD8Async(loaded_.Address(input.buffer), 0,
                                static_cast<size_t>(input.buffer.bytes), loaded_.stream());
      MENDEL_RETURN_IF_ERROR(driver_.Check(filled, "cuMemsetD8Async"));
    }
    MENDEL_RETURN_IF_ERROR(Replay(whole_, loaded_.stream()));
    MENDEL_RETURN_IF_ERROR(loaded_.Wait());
    return SecondsBetween(0, 1);
  }

  /// Makes what a loaded program still needs to run. Later calls do nothing.
  absl::Status MakeReady() {
    if (launches_) return absl::OkStatus();
    MENDEL_RETURN_IF_ERROR(loaded_.LoadStaging());
    if (!done_) MENDEL_RETURN_IF_ERROR(MakeEvent(kEventWithoutTime, done_));
    MENDEL_RETURN_IF_ERROR(CaptureRun());
    return CaptureLaunches();
  }

  /// Appends the order of the launches to the first step's text, and `more`: why other orders were
  /// left out.
  void ReportOrder(const std::string& more) {
    if (!steps_.empty()) steps_[0].kernel += Cat("; launches ", OrderReported(program_), more);
  }

  absl::Status Run(std::span<const std::span<const std::byte>> inputs,
                   std::span<const std::span<std::byte>> outputs) override {
    MENDEL_RETURN_IF_ERROR(Begin(inputs, outputs));
    MENDEL_RETURN_IF_ERROR(Replay(graph_, loaded_.stream()));
    MENDEL_RETURN_IF_ERROR(loaded_.Wait());
    Deliver(outputs);
    return absl::OkStatus();
  }

  /// Times the launches between two events in one graph, so that no time of the host counts. Before
  /// it, the cache is filled, or a replay warms it. A replay may reuse the inputs' memory: they are
  /// copied again.
  absl::StatusOr<double> TimeRun(std::span<const std::span<const std::byte>> inputs,
                                 std::span<const std::span<std::byte>> outputs,
                                 const std::function<void()>& evict) override {
    MENDEL_RETURN_IF_ERROR(Begin(inputs, outputs));
    MENDEL_RETURN_IF_ERROR(CaptureWhole());
    MENDEL_RETURN_IF_ERROR(loaded_.CopyIn());
    if (evict != nullptr) {
      MENDEL_RETURN_IF_ERROR(cache_.Fill(driver_, context_.device(), loaded_.stream()));
    } else {
      MENDEL_RETURN_IF_ERROR(Replay(launches_, loaded_.stream()));
      MENDEL_RETURN_IF_ERROR(loaded_.CopyIn());
    }
    MENDEL_RETURN_IF_ERROR(Replay(whole_, loaded_.stream()));
    MENDEL_RETURN_IF_ERROR(loaded_.CopyOut());
    MENDEL_RETURN_IF_ERROR(loaded_.Wait());
    Deliver(outputs);
    return SecondsBetween(0, 1);
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
    // The event is recorded after an error, too: all work on the stream must end before the next
    // run begins.
    const int recorded = driver_.EventRecord(done_.get(), stream);
    MENDEL_RETURN_IF_ERROR(enqueued);
    MENDEL_RETURN_IF_ERROR(driver_.Check(recorded, "cuEventRecord"));
    if (run.ready_event == nullptr) return absl::OkStatus();
    return driver_.Check(driver_.EventRecord(static_cast<DriverEvent*>(run.ready_event), stream),
                         "cuEventRecord of the ready event");
  }

  const std::vector<Step>& steps() const override { return steps_; }

  absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs,
                        std::span<const std::span<std::byte>> outputs,
                        std::vector<double>& seconds) override {
    MENDEL_RETURN_IF_ERROR(Begin(inputs, outputs));
    MENDEL_RETURN_IF_ERROR(MakeEvents(program_.launches.size() + 2));
    if (!timed_) MENDEL_RETURN_IF_ERROR(CaptureTimed());
    MENDEL_RETURN_IF_ERROR(loaded_.CopyIn());
    MENDEL_RETURN_IF_ERROR(Replay(timed_, loaded_.stream()));
    MENDEL_RETURN_IF_ERROR(loaded_.CopyOut());
    MENDEL_RETURN_IF_ERROR(loaded_.Wait());
    seconds.assign(program_.launches.size(), 0);
    MENDEL_ASSIGN_OR_RETURN(const double event, SecondsBetween(0, 1));
    for (size_t k = 0; k < seconds.size(); ++k) {
      MENDEL_ASSIGN_OR_RETURN(const double with_event, SecondsBetween(k + 1, k + 2));
      seconds[k] = std::max(0.0, with_event - event);
    }
    Deliver(outputs);
    return absl::OkStatus();
  }

  MemoryReport memory() const override {
    return {.arena_bytes = program_.arena_bytes,
            .alive_bytes = program_.alive_bytes,
            .weight_bytes = loaded_.weight_bytes(),
            .scratch_bytes = 0};
  }

 private:
  absl::Status Enter() {
    MENDEL_RETURN_IF_ERROR(context_.Retain(driver_));
    return context_.MakeCurrent();
  }

  absl::Status Capture(size_t pieces, const std::function<absl::Status(size_t)>& enqueue,
                       const Dependencies* dependencies, Owned<DriverGraphExec*>& captured) {
    const absl::Status status =
        CaptureGraph(driver_, loaded_.stream(), pieces, enqueue, dependencies, captured);
    return dependencies == nullptr
               ? status
               : Annotate(status,
                          "branches side by side, which MENDEL_CUDA_EXPERIMENTS=off avoids");
  }
  absl::Status Replay(const Owned<DriverGraphExec*>& graph, DriverStream* stream) {
    return driver_.Check(driver_.GraphLaunch(graph.get(), stream), "cuGraphLaunch");
  }

  /// Captures a whole run.
  absl::Status CaptureRun() {
    const size_t inputs = program_.inputs.size(), launched = inputs + program_.launches.size();
    const auto enqueue = [&](size_t k) {
      if (k < inputs) return loaded_.CopyIn(program_.inputs[k]);
      return k < launched ? loaded_.Launch(k - inputs)
                          : loaded_.CopyOut(program_.outputs[k - launched]);
    };
    const Dependencies dependencies =
        branches_ ? DependenciesOf(UsesOfRun(program_)) : Dependencies();
    return Capture(launched + program_.outputs.size(), enqueue, branches_ ? &dependencies : nullptr,
                   graph_);
  }

  absl::Status CaptureLaunches() {
    const auto enqueue = [&](size_t k) { return loaded_.Launch(k); };
    return Capture(program_.launches.size(), enqueue, branches_ ? &dependencies_ : nullptr,
                   launches_);
  }

  /// Captures the launches with an event before and one after them, once.
  absl::Status CaptureWhole() {
    if (whole_) return absl::OkStatus();
    MENDEL_RETURN_IF_ERROR(MakeEvents(2));
    const Dependencies dependencies = branches_ ? Framed(dependencies_) : Dependencies();
    const size_t last = program_.launches.size() + 1;
    const auto enqueue = [&](size_t k) {
      return k == 0 ? Record(0) : (k == last ? Record(1) : loaded_.Launch(k - 1));
    };
    return Capture(last + 1, enqueue, branches_ ? &dependencies : nullptr, whole_);
  }

  /// Captures the launches, one after the other, with an event around each. Two events with nothing
  /// between them come first: they show how long an event takes.
  absl::Status CaptureTimed() {
    const auto enqueue = [&](size_t k) {
      if (k == 0) return Record(0);
      return k % 2 == 1 ? Record((k + 1) / 2) : loaded_.Launch(k / 2 - 1);
    };
    return Capture(2 * program_.launches.size() + 2, enqueue, nullptr, timed_);
  }

  absl::Status Record(size_t event) {
    return driver_.Check(
        driver_.EventRecordWithFlags(events_[event].get(), loaded_.stream(), kExternalEvent),
        "cuEventRecordWithFlags");
  }

  /// Checks that a run can be put onto the caller's stream.
  absl::Status CheckStream(DriverStream* stream) {
    int capturing = 0;
    MENDEL_RETURN_IF_ERROR(
        driver_.Check(driver_.StreamIsCapturing(stream, &capturing), "cuStreamIsCapturing"));
    if (capturing != 0)
      return InvalidInput("the stream is being captured, and a plan's run cannot be");
    DriverContext* context = nullptr;
    MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.StreamGetCtx(stream, &context), "cuStreamGetCtx"));
    if (context == context_.get()) return absl::OkStatus();
    return InvalidInput("the stream belongs to another context than the primary one of ", device(),
                        ", where the plan is");
  }

  /// One run at a time uses the plan's memory, on whatever stream.
  absl::Status AfterLastRun(DriverStream* stream) {
    return driver_.Check(driver_.StreamWaitEvent(stream, done_.get(), 0), "cuStreamWaitEvent");
  }

  absl::Status EnqueueOn(DriverStream* stream, const DeviceRun& run) {
    for (size_t k = 0; k < run.inputs.size(); ++k) {
      const DeviceCopy& input = program_.inputs[k];
      MENDEL_RETURN_IF_ERROR(
          CopyOnDevice("input", input, loaded_.Address(input.buffer), run.inputs[k], stream));
    }
    MENDEL_RETURN_IF_ERROR(Replay(launches_, stream));
    for (size_t k = 0; k < run.outputs.size(); ++k) {
      const DeviceCopy& output = program_.outputs[k];
      MENDEL_RETURN_IF_ERROR(
          CopyOnDevice("output", output, run.outputs[k], loaded_.Address(output.buffer), stream));
    }
    return absl::OkStatus();
  }

  absl::Status CopyOnDevice(std::string_view what, const DeviceCopy& copy, uint64_t to,
                            uint64_t from, DriverStream* stream) {
    if (copy.buffer.bytes == 0) return absl::OkStatus();
    const int result =
        driver_.MemcpyDtoDAsync(to, from, static_cast<size_t>(copy.buffer.bytes), stream);
    if (result == kInvalidValue) {
      return InvalidInput(what, " '", copy.name, "' is not the address of ", copy.buffer.bytes,
                          " bytes that ", device(), " can reach");
    }
    return driver_.Check(result, "cuMemcpyDtoDAsync");
  }

  absl::Status Begin(std::span<const std::span<const std::byte>> inputs,
                     std::span<const std::span<std::byte>> outputs) {
    MENDEL_RETURN_IF_ERROR(CheckBuffers("input", program_.inputs, inputs));
    MENDEL_RETURN_IF_ERROR(CheckBuffers("output", program_.outputs, outputs));
    MENDEL_RETURN_IF_ERROR(driver_.CheckUsable());
    MENDEL_RETURN_IF_ERROR(context_.MakeCurrent());
    MENDEL_RETURN_IF_ERROR(AfterLastRun(loaded_.stream()));
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (!inputs[k].empty())
        std::memcpy(loaded_.Staging(program_.inputs[k]), inputs[k].data(), inputs[k].size());
    }
    return absl::OkStatus();
  }

  void Deliver(std::span<const std::span<std::byte>> outputs) const {
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (!outputs[k].empty())
        std::memcpy(outputs[k].data(), loaded_.Staging(program_.outputs[k]), outputs[k].size());
    }
  }

  absl::Status MakeEvent(unsigned flags, Owned<DriverEvent*>& event) {
    DriverEvent* handle = nullptr;
    const int made = driver_.EventCreate(&handle, flags);
    return Keep(driver_, made, "cuEventCreate", handle, driver_.EventDestroy, event);
  }
  /// Ensures that `events_` has at least `count` timing events.
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
    MENDEL_RETURN_IF_ERROR(driver_.Check(
        driver_.EventElapsedTime(&milliseconds, events_[from].get(), events_[to].get()),
        "cuEventElapsedTime"));
    return static_cast<double>(milliseconds) * 1e-3;
  }

  const Driver& driver_;
  std::vector<Step> steps_;
  Dependencies dependencies_;   // dependencies of the launches, where branches were requested
  bool branches_ = false;       // launches that nothing orders may run side by side
  bool ran_elsewhere_ = false;  // on a caller's stream
  // Members are destroyed from the last to the first.
  Context context_;
  LoadedProgram loaded_;
  const DeviceProgram& program_ = loaded_.program();
  DeviceCache cache_;
  std::vector<Owned<DriverEvent*>> events_;  // timing events
  Owned<DriverGraphExec*> graph_;            // a whole run: copies in, launches, copies out
  Owned<DriverGraphExec*> launches_;         // the launches alone
  Owned<DriverGraphExec*> whole_;  // the launches between two events; made by the first TimeRun
  Owned<DriverGraphExec*> timed_;  // the launches with events between; made by the first RunTimed
  Owned<DriverEvent*> done_;       // after the last run on a caller's stream
};

/// True where `other`, another order of what `best` has loaded, is faster. It is then ready to run.
absl::StatusOr<bool> ReadyWhereFaster(CudaExecutable& other, CudaExecutable& best) {
  MENDEL_RETURN_IF_ERROR(other.LoadLike(best));
  MENDEL_ASSIGN_OR_RETURN(const bool faster, IsFaster([&] { return other.TimeOnZeros(); },
                                                      [&] { return best.TimeOnZeros(); }));
  if (faster) MENDEL_RETURN_IF_ERROR(other.MakeReady());
  return faster;
}

}  // namespace

absl::Status KeepPrimaryContext(const Driver& driver) {
  int device = 0;
  DriverContext* context = nullptr;
  MENDEL_RETURN_IF_ERROR(driver.Check(driver.DeviceGet(&device, 0), "cuDeviceGet"));
  return driver.Check(driver.DevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
}

absl::StatusOr<std::unique_ptr<Executable>> MakeExecutable(const Driver& driver,
                                                           DeviceProgram program,
                                                           const ImageOf& image) {
  auto executable = std::make_unique<CudaExecutable>(driver, std::move(program));
  MENDEL_RETURN_IF_ERROR(executable->Load(image));
  MENDEL_RETURN_IF_ERROR(executable->MakeReady());
  return std::unique_ptr<Executable>(std::move(executable));
}

absl::StatusOr<std::unique_ptr<Executable>> MakeFastest(const Driver& driver,
                                                        std::vector<DeviceProgram> orders,
                                                        const ImageOf& image) {
  auto best = std::make_unique<CudaExecutable>(driver, std::move(orders[0]));
  MENDEL_RETURN_IF_ERROR(best->Load(image));
  std::string failed;
  for (size_t k = 1; k < orders.size(); ++k) {
    const std::string description = OrderReported(orders[k]);
    auto other = std::make_unique<CudaExecutable>(driver, std::move(orders[k]));
    const absl::StatusOr<bool> faster = ReadyWhereFaster(*other, *best);
    if (faster.ok() && *faster) best = std::move(other);
    if (faster.ok()) continue;
    // Nobody requested this order. Its error is reported, and the program runs in another
    // order.
    MENDEL_RETURN_IF_ERROR(driver.CheckUsable());
    failed += Cat(", not ", description, " (", std::string(faster.status().message()), ")");
  }
  MENDEL_RETURN_IF_ERROR(best->MakeReady());
  best->ReportOrder(failed);
  return std::unique_ptr<Executable>(std::move(best));
}

}  // namespace mendel::cuda
