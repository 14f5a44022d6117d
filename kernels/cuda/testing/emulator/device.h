// The emulator as a device: kernel text compiled by the host's compiler at run time.
#ifndef MENDEL_KERNELS_CUDA_TESTING_EMULATOR_DEVICE_H_
#define MENDEL_KERNELS_CUDA_TESTING_EMULATOR_DEVICE_H_

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/testing/emulator/launch.h"

namespace mendel::cuda {

/// A library of compiled texts, loaded; unloaded and deleted with the object.
class EmulatedModule : public Module {
 public:
  ~EmulatedModule() override;
  EmulatedModule(const EmulatedModule&) = delete;
  EmulatedModule& operator=(const EmulatedModule&) = delete;

  /// Compiles all texts as one file, which costs less than one by one, and `extra` after them.
  /// Every entry in `extra` that is to be launched needs the line MENDEL_ENTRY(name,
  /// qualified::name). InvalidArgument with the compiler's output.
  static absl::StatusOr<std::unique_ptr<EmulatedModule>> Compile(
      std::span<const EmittedKernel> kernels, const std::string& extra = "");

  /// Build makes the bytes of a shared library, which Open loads, in another process of the same
  /// build, too.
  static absl::StatusOr<std::vector<char>> Build(std::span<const EmittedKernel> kernels,
                                                 const std::string& extra = "");
  static absl::StatusOr<std::unique_ptr<EmulatedModule>> Open(std::span<const char> library);

  absl::Status Launch(const std::string& name, const LaunchShape& launch,
                      std::span<const Argument> arguments) override;
  /// Number of the parameters of entry `name`; -1 when there is no such entry.
  int Arity(const std::string& name) const;
  /// Threads of a block that its launch bounds allow: a compiler keeps within the registers for as
  /// many. 256 where it has none, since each thread may then have 255 of a multiprocessor's 65,536.
  int MostThreads(const std::string& name) const;
  /// An object or function with C linkage; null when there is none.
  void* Symbol(const std::string& name) const;

 private:
  explicit EmulatedModule(std::string folder) : folder_(std::move(folder)) {}
  absl::Status BuildHere(std::span<const EmittedKernel> kernels, const std::string& extra) const;
  absl::Status OpenHere();

  std::string folder_;  ///< its own, with the library and what it is made of
  void* library_ = nullptr;
  uintptr_t image_low_ = 0, image_high_ = 0;
};

/// True if the compiler's instrumentation reports accesses to whole objects, which must be aligned
/// as such. clang's reports the object's parts.
bool SeesAlignmentOfObjects();

class EmulatorDevice : public Device {
 public:
  std::string Identity() const override;
  absl::StatusOr<std::unique_ptr<Module>> Load(
      std::span<const EmittedKernel> kernels) const override;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_EMULATOR_DEVICE_H_
