// A loaded program is a program on a device: its memory, kernels and library calls, and its work
// piece by piece on one stream.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_LOADED_PROGRAM_H_
#define MENDEL_KERNELS_CUDA_BACKEND_LOADED_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cuda/backend/kernel_images.h"
#include "kernels/cuda/backend/library_call.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/backend/resources.h"
#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

/// The state on a device that all orders of one program (LowerInOrders) share: kernels, constants,
/// the stream, the libraries' handles.
struct SharedOnDevice {
  int64_t weight_bytes = 0;
  std::map<std::string, DriverFunction*> functions;  // by entry
  // Members are destroyed from the last to the first.
  std::vector<Owned<uint64_t>> constants;     // by allocation
  std::vector<Owned<DriverModule*>> modules;  // one a kernel
  Owned<DriverStream*> stream;
  LibraryHandles handles;
};

/// Not thread-safe. The device's context is current in all calls, the destructor included. `driver`
/// must outlive it.
class LoadedProgram {
 public:
  LoadedProgram(const Driver& driver, DeviceProgram program)
      : driver_(driver), program_(std::move(program)) {}

  /// Uploads weights and loads kernels, allocates, makes each library call once, and waits. Once.
  absl::Status Load(const ImageOf& image);
  /// Loads another order of the program that `other` has loaded. The two share kernels, constants
  /// and the stream.
  absl::Status LoadLike(const LoadedProgram& other);
  /// Allocates the staging memory of CopyIn and CopyOut, which must not be called before.
  absl::Status LoadStaging();

  /// The program without its weights, which lie on the device.
  const DeviceProgram& program() const { return program_; }
  /// Null before anything is loaded.
  DriverStream* stream() const { return shared_ == nullptr ? nullptr : shared_->stream.get(); }
  uint64_t Address(const DeviceBuffer& buffer) const {
    const auto& memory = buffer.allocation < program_.constants ? shared_->constants : memory_;
    return memory[buffer.allocation].get() + static_cast<uint64_t>(buffer.offset);
  }
  /// The copy's place in pinned host memory.
  std::byte* Staging(const DeviceCopy& copy) const {
    return static_cast<std::byte*>(staging_.get()) + copy.staging;
  }
  int64_t weight_bytes() const { return shared_->weight_bytes; }

  // These functions put work onto the stream.
  absl::Status CopyIn(const DeviceCopy& input);
  absl::Status CopyIn();
  absl::Status CopyOut(const DeviceCopy& output);
  absl::Status CopyOut();
  absl::Status Launch(size_t k);
  /// Waits until the stream has done everything.
  absl::Status Wait() {
    return driver_.Check(driver_.StreamSynchronize(stream()), "cuStreamSynchronize");
  }

 private:
  absl::Status Allocate(int64_t bytes, Owned<uint64_t>& memory);
  absl::Status LoadConstants();
  absl::Status LoadKernels(const ImageOf& image);
  /// Loads what belongs to this order alone.
  absl::Status LoadOrder();
  absl::Status LoadCalls();

  const Driver& driver_;
  DeviceProgram program_;
  std::vector<DriverFunction*> functions_;  // a launch each; null where a library is called
  std::vector<uint64_t> addresses_;
  std::vector<void*> parameters_;
  // Members are destroyed from the last to the first.
  std::shared_ptr<SharedOnDevice> shared_;
  std::vector<Owned<uint64_t>> memory_;  // by allocation; none for constants
  Owned<void*> staging_;
  std::vector<std::unique_ptr<LoadedCall>>
      calls_;  // a launch each; null where a kernel is launched
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_LOADED_PROGRAM_H_
