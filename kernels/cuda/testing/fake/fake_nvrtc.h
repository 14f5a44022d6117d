// NVRTC's function table without a toolkit: texts are compiled for the emulator. For tests.
#ifndef MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_NVRTC_H_
#define MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_NVRTC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/cuda/nvrtc/compiler.h"

namespace mendel::cuda {

/// Version 13.99, so that nothing it makes is taken for a real compiler's, for sm_75 to sm_120.
/// The fake driver (fake_image.h) loads its images; logs are those of the host's
/// compiler, or say 32 registers. As the real one it refuses options that it does not know and
/// programs that are not there, and has no cubin of what did not compile. Thread-safe; one at a
/// time in a process.
class FakeNvrtc {
 public:
  FakeNvrtc();
  ~FakeNvrtc();
  FakeNvrtc(const FakeNvrtc&) = delete;
  FakeNvrtc& operator=(const FakeNvrtc&) = delete;

  const Nvrtc& table() const { return table_; }

  /// At first 13.99.
  void SetVersion(int major, int minor);
  /// The call with this number, counted from now and from 1, fails with 11 (internal error), once.
  /// 0: none does.
  void FailAt(int64_t call);
  /// The entry of that call; empty while it has not come.
  std::string FailedCall() const;
  /// Programs that were made and not destroyed.
  size_t Programs() const;

  struct State;

 private:
  Nvrtc table_;
  std::unique_ptr<State> state_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_NVRTC_H_
