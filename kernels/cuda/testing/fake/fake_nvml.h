// NVML's function table without a GPU: for tests.
#ifndef MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_NVML_H_
#define MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_NVML_H_

#include <cstdint>
#include <string>

#include "kernels/cuda/driver_table/nvml.h"

namespace mendel::cuda {

/// One device, the fake driver's: 1,500 of 1,980 MHz, memory 2,619 MHz, 312.5 of 700 W, 54 C, held
/// back by the power limit and heat. One such library at a time in a process.
class FakeNvml {
 public:
  explicit FakeNvml(std::string uuid);
  ~FakeNvml();
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  const Nvml& table() const { return table_; }
  /// The call with this number, counted from now and from 1, fails, once, with 3: not supported. 0:
  /// none does.
  void FailAt(int64_t call);

 private:
  static int Answer(unsigned* to, unsigned value);
  static int Next();
  static FakeNvml* current_;

  Nvml table_;
  std::string uuid_;
  int64_t calls_ = 0, fail_at_ = 0;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_NVML_H_
