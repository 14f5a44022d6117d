#include "kernels/cuda/backend/loaded_program.h"

#include <memory>
#include <utility>

#include "base/status.h"

namespace mendel::cuda {
namespace {

// Constants of cuda.h.
constexpr int kFunctionSharedBytes = 8;
constexpr unsigned kSharedWithoutAsking = 48 << 10;
constexpr unsigned kNonBlockingStream = 1;

}  // namespace

absl::Status LoadedProgram::Load(const ImageOf& image) {
  auto shared = std::make_shared<SharedOnDevice>();
  DriverStream* stream = nullptr;
  const int made = driver_.StreamCreate(&stream, kNonBlockingStream);
  MENDEL_RETURN_IF_ERROR(
      Keep(driver_, made, "cuStreamCreate", stream, driver_.StreamDestroy, shared->stream));
  shared_ = std::move(shared);
  MENDEL_RETURN_IF_ERROR(LoadConstants());
  MENDEL_RETURN_IF_ERROR(LoadKernels(image));
  return LoadOrder();
}

absl::Status LoadedProgram::LoadLike(const LoadedProgram& other) {
  shared_ = other.shared_;
  return LoadOrder();
}

absl::Status LoadedProgram::LoadOrder() {
  memory_.resize(program_.allocations.size());
  for (size_t k = program_.constants; k < memory_.size(); ++k) {
    MENDEL_RETURN_IF_ERROR(Allocate(program_.allocations[k], memory_[k]));
  }
  for (const DeviceLaunch& launch : program_.launches) {
    functions_.push_back(launch.call != nullptr ? nullptr : shared_->functions.at(launch.kernel));
  }
  return LoadCalls();
}

absl::Status LoadedProgram::LoadStaging() {
  if (program_.staging_bytes == 0) return absl::OkStatus();
  void* staging = nullptr;
  const int pinned = driver_.MemHostAlloc(&staging, static_cast<size_t>(program_.staging_bytes), 0);
  return Keep(driver_, pinned, "cuMemHostAlloc", staging, driver_.MemFreeHost, staging_);
}

absl::Status LoadedProgram::Allocate(int64_t bytes, Owned<uint64_t>& memory) {
  if (bytes == 0) return absl::OkStatus();
  uint64_t address = 0;
  const int result = driver_.MemAlloc(&address, static_cast<size_t>(bytes));
  return Annotate(Keep(driver_, result, "cuMemAlloc", address, driver_.MemFree, memory),
                  Cat(bytes, " bytes of device memory"));
}

absl::Status LoadedProgram::LoadConstants() {
  shared_->constants.resize(program_.constants);
  for (size_t k = 0; k < program_.constants; ++k) {
    MENDEL_RETURN_IF_ERROR(Allocate(program_.allocations[k], shared_->constants[k]));
  }
  shared_->weight_bytes = static_cast<int64_t>(program_.weights.size());
  for (const DeviceUpload& upload : program_.uploads) {
    if (upload.to.bytes == 0) continue;
    const int result =
        driver_.MemcpyHtoDAsync(Address(upload.to), program_.weights.data() + upload.from,
                                static_cast<size_t>(upload.to.bytes), stream());
    MENDEL_RETURN_IF_ERROR(driver_.Check(result, "cuMemcpyHtoDAsync"));
  }
  // Waits for this stream alone: synchronizing the context would wait for other work, and is
  // forbidden while another thread captures.
  if (!program_.uploads.empty()) MENDEL_RETURN_IF_ERROR(Wait());
  program_.weights = {};
  return absl::OkStatus();
}

absl::Status LoadedProgram::LoadKernels(const ImageOf& image) {
  MENDEL_ASSIGN_OR_RETURN(const auto images, CompileKernels(program_, image));
  shared_->modules.resize(images.size());
  for (size_t k = 0; k < images.size(); ++k) {
    DriverModule* module = nullptr;
    const int loaded = driver_.ModuleLoadData(&module, images[k].data());
    MENDEL_RETURN_IF_ERROR(Keep(driver_, loaded, "cuModuleLoadData", module, driver_.ModuleUnload,
                                shared_->modules[k]));
    const std::string& entry = program_.entries[k];
    MENDEL_RETURN_IF_ERROR(
        driver_.Check(driver_.ModuleGetFunction(&shared_->functions[entry], module, entry.c_str()),
                      "cuModuleGetFunction"));
  }
  for (const DeviceLaunch& launch : program_.launches) {
    if (launch.call != nullptr || launch.shape.shared <= kSharedWithoutAsking) continue;
    MENDEL_RETURN_IF_ERROR(driver_.Check(
        driver_.FuncSetAttribute(shared_->functions.at(launch.kernel), kFunctionSharedBytes,
                                 static_cast<int>(launch.shape.shared)),
        "cuFuncSetAttribute"));
  }
  return absl::OkStatus();
}

/// Makes each call once, on whatever lies in its memory: what a library loads for its first call,
/// no capture allows.
absl::Status LoadedProgram::LoadCalls() {
  calls_.resize(program_.launches.size());
  bool any = false;
  for (size_t k = 0; k < calls_.size(); ++k) {
    const DeviceLaunch& launch = program_.launches[k];
    if (launch.call == nullptr) continue;
    CallSite site{stream(), {}, launch.workspace.bytes > 0 ? Address(launch.workspace) : 0};
    for (const DeviceBuffer& buffer : launch.pointers) site.pointers.push_back(Address(buffer));
    auto loaded = launch.call->Load(site, shared_->handles);
    if (!loaded.ok()) return Annotate(loaded.status(), launch.info.name);
    calls_[k] = *std::move(loaded);
    MENDEL_RETURN_IF_ERROR(Launch(k));
    any = true;
  }
  return any ? Wait() : absl::OkStatus();
}

absl::Status LoadedProgram::CopyIn(const DeviceCopy& input) {
  if (input.buffer.bytes == 0) return absl::OkStatus();
  return driver_.Check(driver_.MemcpyHtoDAsync(Address(input.buffer), Staging(input),
                                               static_cast<size_t>(input.buffer.bytes), stream()),
                       "cuMemcpyHtoDAsync");
}

absl::Status LoadedProgram::CopyIn() {
  for (const DeviceCopy& input : program_.inputs) MENDEL_RETURN_IF_ERROR(CopyIn(input));
  return absl::OkStatus();
}

absl::Status LoadedProgram::CopyOut(const DeviceCopy& output) {
  if (output.buffer.bytes == 0) return absl::OkStatus();
  return driver_.Check(driver_.MemcpyDtoHAsync(Staging(output), Address(output.buffer),
                                               static_cast<size_t>(output.buffer.bytes), stream()),
                       "cuMemcpyDtoHAsync");
}

absl::Status LoadedProgram::CopyOut() {
  for (const DeviceCopy& output : program_.outputs) MENDEL_RETURN_IF_ERROR(CopyOut(output));
  return absl::OkStatus();
}

absl::Status LoadedProgram::Launch(size_t k) {
  const DeviceLaunch& launch = program_.launches[k];
  if (calls_[k] != nullptr) return Annotate(calls_[k]->Enqueue(), launch.info.name);
  addresses_.clear();
  for (const DeviceBuffer& buffer : launch.pointers) addresses_.push_back(Address(buffer));
  parameters_.clear();
  for (uint64_t& address : addresses_) parameters_.push_back(&address);
  const int result =
      driver_.LaunchKernel(functions_[k], launch.shape.grid, 1, 1, launch.shape.block, 1, 1,
                           launch.shape.shared, stream(), parameters_.data(), nullptr);
  return Annotate(driver_.Check(result, "cuLaunchKernel"), launch.info.name);
}

}  // namespace mendel::cuda
