#include "kernels/cuda/backend/executable.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/backend/library_call.h"
#include "kernels/cuda/backend/resources.h"

namespace mendel::cuda {
namespace {

// Of cuda.h.
constexpr int kFunctionSharedBytes = 8;
constexpr unsigned kSharedWithoutAsking = 48 << 10;
constexpr unsigned kNonBlockingStream = 1;
constexpr int kThreadLocalCapture = 1;

/// The device's primary context, retained.
class Context {
 public:
  ~Context() {
    if (driver_ != nullptr) driver_->DevicePrimaryCtxRelease(device_);
  }
  absl::Status Retain(const Driver& driver) {
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.DeviceGet(&device_, 0), "cuDeviceGet"));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.DevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain"));
    driver_ = &driver;
    return absl::OkStatus();
  }
  /// For the calling thread.
  absl::Status MakeCurrent() const { return driver_->Check(driver_->CtxSetCurrent(context_), "cuCtxSetCurrent"); }

 private:
  const Driver* driver_ = nullptr;
  int device_ = 0;
  DriverContext* context_ = nullptr;
};

absl::Status CheckBuffers(std::string_view what, const std::vector<DeviceCopy>& copies, auto buffers) {
  if (buffers.size() != copies.size()) return InvalidInput("expected ", copies.size(), " ", what, "s, not ", buffers.size());
  for (size_t k = 0; k < copies.size(); ++k) {
    const TensorType& type = copies[k].type;
    if (static_cast<int64_t>(buffers[k].size()) != ByteSize(type)) {
      return InvalidInput(what, " '", copies[k].name, "' is ", TypeString(type), ": ", ByteSize(type), " bytes, not ",
                          buffers[k].size());
    }
    if (reinterpret_cast<uintptr_t>(buffers[k].data()) % static_cast<uintptr_t>(DTypeSize(type.dtype)) != 0) {
      return InvalidInput(what, " '", copies[k].name, "' is not aligned to its element size");
    }
  }
  return absl::OkStatus();
}

class CudaExecutable final : public Executable {
 public:
  CudaExecutable(const Driver& driver, DeviceProgram program) : driver_(driver), program_(std::move(program)) {
    for (const DeviceLaunch& launch : program_.launches) steps_.push_back(launch.info);
  }
  ~CudaExecutable() override {
    if (stream_) (void)context_.MakeCurrent();
  }

  absl::Status Prepare(const ImageOf& image) {
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
    return Capture();
  }

  absl::Status Run(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs) override {
    MENDEL_RETURN_IF_ERROR(Begin(inputs, outputs));
    MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.GraphLaunch(graph_.get(), stream_.get()), "cuGraphLaunch"));
    MENDEL_RETURN_IF_ERROR(Wait());
    Deliver(outputs);
    return absl::OkStatus();
  }

  const std::vector<Step>& steps() const override { return steps_; }

  absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs,
                        std::vector<double>& seconds) override {
    MENDEL_RETURN_IF_ERROR(Begin(inputs, outputs));
    MENDEL_RETURN_IF_ERROR(MakeEvents());
    MENDEL_RETURN_IF_ERROR(CopyIn());
    MENDEL_RETURN_IF_ERROR(Record(0));
    for (size_t k = 0; k < program_.launches.size(); ++k) {
      MENDEL_RETURN_IF_ERROR(Launch(k));
      MENDEL_RETURN_IF_ERROR(Record(k + 1));
    }
    MENDEL_RETURN_IF_ERROR(CopyOut());
    MENDEL_RETURN_IF_ERROR(Wait());
    seconds.assign(program_.launches.size(), 0);
    for (size_t k = 0; k < seconds.size(); ++k) {
      float milliseconds = 0;
      MENDEL_RETURN_IF_ERROR(
          driver_.Check(driver_.EventElapsedTime(&milliseconds, events_[k].get(), events_[k + 1].get()), "cuEventElapsedTime"));
      seconds[k] = static_cast<double>(milliseconds) * 1e-3;
    }
    Deliver(outputs);
    return absl::OkStatus();
  }

  MemoryReport memory() const override {
    return {.arena_bytes = program_.arena_bytes, .weight_bytes = weight_bytes_, .scratch_bytes = 0};
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
      const int result =
          driver_.MemcpyHtoD(Address(upload.to), program_.weights.data() + upload.from, static_cast<size_t>(upload.to.bytes));
      MENDEL_RETURN_IF_ERROR(driver_.Check(result, "cuMemcpyHtoD"));
    }
    // A copy of pageable memory may return before it has ended, and the stream of this program, a non-blocking one, would not wait.
    if (!program_.uploads.empty()) MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.CtxSynchronize(), "cuCtxSynchronize"));
    program_.weights = {};  // the device has them
    return absl::OkStatus();
  }

  absl::Status LoadKernels(const ImageOf& image) {
    functions_.resize(program_.launches.size());
    if (program_.texts.empty()) return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(const std::vector<char> bytes, image(program_.ModuleText()));
    DriverModule* module = nullptr;
    const int loaded = driver_.ModuleLoadData(&module, bytes.data());
    MENDEL_RETURN_IF_ERROR(Keep(driver_, loaded, "cuModuleLoadData", module, driver_.ModuleUnload, module_));
    std::map<std::string, DriverFunction*> functions;
    for (size_t k = 0; k < functions_.size(); ++k) {
      const DeviceLaunch& launch = program_.launches[k];
      if (launch.call != nullptr) continue;
      DriverFunction*& function = functions[launch.kernel];
      if (function == nullptr) {
        MENDEL_RETURN_IF_ERROR(
            driver_.Check(driver_.ModuleGetFunction(&function, module, launch.kernel.c_str()), "cuModuleGetFunction"));
      }
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

  /// A whole run as one graph.
  absl::Status Capture() {
    MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.StreamBeginCapture(stream_.get(), kThreadLocalCapture), "cuStreamBeginCapture"));
    const absl::Status enqueued = Enqueue();
    // Ended in any case: a stream that captures can do nothing else, not even be destroyed in peace.
    DriverGraph* captured = nullptr;
    const int ended = driver_.StreamEndCapture(stream_.get(), &captured);
    Owned<DriverGraph*> graph(captured, driver_.GraphDestroy);
    MENDEL_RETURN_IF_ERROR(enqueued);
    MENDEL_RETURN_IF_ERROR(driver_.Check(ended, "cuStreamEndCapture"));
    DriverGraphExec* exec = nullptr;
    const int made = driver_.GraphInstantiate(&exec, graph.get(), 0);
    return Keep(driver_, made, "cuGraphInstantiate", exec, driver_.GraphExecDestroy, graph_);
  }

  absl::Status Enqueue() {
    MENDEL_RETURN_IF_ERROR(CopyIn());
    for (size_t k = 0; k < program_.launches.size(); ++k) MENDEL_RETURN_IF_ERROR(Launch(k));
    return CopyOut();
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
    MENDEL_RETURN_IF_ERROR(context_.MakeCurrent());
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

  absl::Status MakeEvents() {
    while (events_.size() <= program_.launches.size()) {
      DriverEvent* event = nullptr;
      const int made = driver_.EventCreate(&event, 0);
      Owned<DriverEvent*> owned;
      MENDEL_RETURN_IF_ERROR(Keep(driver_, made, "cuEventCreate", event, driver_.EventDestroy, owned));
      events_.push_back(std::move(owned));
    }
    return absl::OkStatus();
  }
  absl::Status Record(size_t k) { return driver_.Check(driver_.EventRecord(events_[k].get(), stream_.get()), "cuEventRecord"); }

  const Driver& driver_;
  DeviceProgram program_;
  std::vector<Step> steps_;
  int64_t weight_bytes_ = 0;
  std::vector<DriverFunction*> functions_;  // a launch each; null where a library is called
  std::vector<uint64_t> addresses_;
  std::vector<void*> parameters_;
  // Destroyed from the last to the first.
  Context context_;
  std::vector<Owned<uint64_t>> memory_;
  Owned<void*> staging_;
  Owned<DriverModule*> module_;
  Owned<DriverStream*> stream_;
  LibraryHandles handles_;
  std::vector<std::unique_ptr<LoadedCall>> calls_;  // a launch each; null where a kernel is launched
  Owned<DriverGraphExec*> graph_;
  std::vector<Owned<DriverEvent*>> events_;
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
