// The device's primary context, and when it is current.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_CONTEXT_H_
#define MENDEL_KERNELS_CUDA_BACKEND_CONTEXT_H_

#include "absl/status/status.h"
#include "base/status.h"
#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

/// The primary context of device 0, retained.
class Context {
 public:
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    if (driver_ != nullptr) driver_->DevicePrimaryCtxRelease(device_);
  }
  absl::Status Retain(const Driver& driver) {
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.DeviceGet(&device_, 0), "cuDeviceGet"));
    MENDEL_RETURN_IF_ERROR(driver.Check(driver.DevicePrimaryCtxRetain(&context_, device_),
                                        "cuDevicePrimaryCtxRetain"));
    driver_ = &driver;
    return absl::OkStatus();
  }
  /// Makes this the calling thread's context.
  absl::Status MakeCurrent() const {
    return driver_->Check(driver_->CtxSetCurrent(context_), "cuCtxSetCurrent");
  }
  int device() const { return device_; }
  DriverContext* get() const { return context_; }

 private:
  const Driver* driver_ = nullptr;
  int device_ = 0;
  DriverContext* context_ = nullptr;
};

/// Current on the calling thread for the life of this; the thread's own context comes back
/// afterwards.
class ContextScope {
 public:
  explicit ContextScope(const Driver& driver) : driver_(driver) {}
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope() {
    DriverContext* ours = nullptr;
    if (entered_) driver_.CtxPopCurrent(&ours);
  }
  absl::Status Enter(const Context& context) {
    MENDEL_RETURN_IF_ERROR(
        driver_.Check(driver_.CtxPushCurrent(context.get()), "cuCtxPushCurrent"));
    entered_ = true;
    return absl::OkStatus();
  }

 private:
  const Driver& driver_;
  bool entered_ = false;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_CONTEXT_H_
