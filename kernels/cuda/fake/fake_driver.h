// The driver's function table without a GPU: kernels run in the emulator, device memory is the host's. For tests.
#ifndef MENDEL_KERNELS_CUDA_FAKE_FAKE_DRIVER_H_
#define MENDEL_KERNELS_CUDA_FAKE_FAKE_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

/// One device with a driver of CUDA 13.0. ModuleLoadData takes CUDA text, ended by a zero, or an image of the fake NVRTC for the
/// device's architecture; the entries of texts are those that are declared `extern "C" __global__`, outside of any namespace or, as
/// the corrector's are, in one that is called after them (NAME_text).
/// Streams run what they are given at once, or record it while they capture; a graph is replayed in an order that is drawn anew
/// each time, from a fixed seed, among those that its dependencies allow. A copy of pageable memory to the device ends when
/// somebody waits for it: CtxSynchronize, a copy back, work on streams that are not non-blocking ones.
///
/// As a real driver it answers with error codes: what lies outside of any allocation or of a module that was unloaded, calls that a
/// capture forbids, handles it did not give out. A kernel's own faults (emulator/launch.h) are errors of its launch; the text of
/// error 700 then tells them. So is memory that two streams access, one writing, without an event or a wait between them
/// (fake_order.h; a kernel counts as writing to all its arguments). Errors 700 and 214, injected ones too, stick: calls that
/// concern the context answer them ever after. Thread-safe; one such driver at a time in a process.
class FakeDriver {
 public:
  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  const Driver& table() const { return table_; }

  /// Compiles all texts as one, which costs less than one by one; modules whose entries are all among them load at once.
  absl::Status Prepare(const std::string& texts);

  /// Of the CUDA that it says it supports.
  void SetVersion(int version);
  /// Of the device: 90 at first.
  void SetArchitecture(int architecture);
  /// Of the device, for what is there now and comes: allocations beyond it fail with error 2. At first there is no limit.
  void SetMemory(size_t bytes);
  /// A stream of another context than the primary one; never given back.
  DriverStream* ForeignStream();

  /// The call with this number, counted from now and from 1, fails with this error, once. 0: none does. Where `entry` is given,
  /// such as "MemAlloc", calls of that alone count.
  void FailAt(int64_t call, int error = 999, const std::string& entry = "");
  /// True when that call has come; then `FailedCall` is its entry's name.
  bool HasFailed() const;
  std::string FailedCall() const;
  /// Calls since the last FailAt.
  int64_t Calls() const;

  /// What has been made and not been given back, for people; empty when there is nothing.
  std::string Leaks() const;

  struct State;

 private:
  Driver table_;
  std::unique_ptr<State> state_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FAKE_FAKE_DRIVER_H_
