// The device's L2 cache, for measurements that must not find their data in it.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_DEVICE_CACHE_H_
#define MENDEL_KERNELS_CUDA_BACKEND_DEVICE_CACHE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "base/status.h"
#include "kernels/cuda/backend/resources.h"
#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

class DeviceCache {
 public:
  /// Writes a buffer of twice the cache's size, on the stream; the first call allocates it.
  /// Unimplemented where the driver does not report the size.
  absl::Status Fill(const Driver& driver, int device, DriverStream* stream) {
    if (!buffer_) MENDEL_RETURN_IF_ERROR(Allocate(driver, device));
    return driver.Check(driver.MemsetD8Async(buffer_.get(), 0, bytes_, stream), "cuMemsetD8Async");
  }

 private:
  absl::Status Allocate(const Driver& driver, int device) {
    int cache = 0;
    MENDEL_RETURN_IF_ERROR(
        driver.Check(driver.DeviceGetAttribute(&cache, kAttributeL2Bytes, device),
                     "cuDeviceGetAttribute of the L2 cache"));
    if (cache <= 0)
      return Unsupported(
          "the driver does not report the size of the L2 cache, so that it cannot be emptied");
    bytes_ = 2 * static_cast<size_t>(cache);
    uint64_t address = 0;
    const int result = driver.MemAlloc(&address, bytes_);
    return Annotate(Keep(driver, result, "cuMemAlloc", address, driver.MemFree, buffer_),
                    Cat(bytes_, " bytes to empty the L2 cache with"));
  }

  Owned<uint64_t> buffer_;
  size_t bytes_ = 0;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_DEVICE_CACHE_H_
