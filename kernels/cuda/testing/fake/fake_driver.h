// The driver's function table without a GPU: kernels run in the emulator, device memory is the
// host's. For tests.
#ifndef MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_DRIVER_H_
#define MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

/// One device with a driver of CUDA 13.0. ModuleLoadData takes CUDA text that ends with a
/// zero, or an image of the fake NVRTC for the device's architecture. The entries of a text
/// are declared `extern "C" __global__`. They lie outside of any namespace or, like the
/// corrector's, in one that is named after them (NAME_text). Streams execute work at once, or
/// record it while they capture. A graph is replayed in an order that its dependencies allow,
/// drawn anew each time from a fixed seed. A copy of pageable memory to the device ends at the
/// next wait for it: CtxSynchronize, a copy back, or work on streams that are not
/// non-blocking.
///
/// Like a real driver, it returns error codes: for memory outside of any allocation, what
/// belongs to an unloaded module, calls that a capture forbids, and handles that it did not
/// make. A kernel's own faults (emulator/launch.h) are errors of its launch; the text of error
/// 700 then reports them. Another such fault is memory that two streams access, one writing,
/// without an event or a wait between them (fake_order.h; a kernel counts as writing to all
/// its arguments). Errors 700 and 214, injected ones too, stick: all later calls that concern
/// the context return them. Thread-safe; one such driver at a time in a process.
class FakeDriver {
 public:
  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  const Driver& table() const { return table_; }

  /// Compiles all texts as one, which costs less than one by one; modules whose entries are all
  /// among them load at once.
  absl::Status Prepare(const std::string& texts);

  /// Sets the version of CUDA that the driver reports.
  void SetVersion(int version);
  /// Sets the device's architecture, 90 at first.
  void SetArchitecture(int architecture);
  /// Sets the device's memory, for present and future allocations: those beyond it fail with error
  /// 2. At first there is no limit.
  void SetMemory(size_t bytes);
  /// A stream of another context than the primary one; never given back.
  DriverStream* ForeignStream();

  /// The call with this number, counted from now and from 1, fails with this error, once. 0: none
  /// does. Where `entry` is given, such as "MemAlloc", calls of that alone count.
  void FailAt(int64_t call, int error = 999, const std::string& entry = "");
  /// True when that call has come; then `FailedCall` is its entry's name.
  bool HasFailed() const;
  std::string FailedCall() const;
  /// Calls since the last FailAt.
  int64_t Calls() const;

  /// Lists what was made and not given back, for people; empty if there is nothing.
  std::string Leaks() const;

  struct State;

 private:
  Driver table_;
  std::unique_ptr<State> state_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_DRIVER_H_
