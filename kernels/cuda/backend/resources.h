// Device resources that give themselves back.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_RESOURCES_H_
#define MENDEL_KERNELS_CUDA_BACKEND_RESOURCES_H_

#include <utility>

#include "base/status.h"
#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

/// One handle of the driver with the entry that destroys it; a null or zero handle is none.
template <class Handle>
class Owned {
 public:
  Owned() = default;
  Owned(Handle handle, int (*destroy)(Handle)) : handle_(handle), destroy_(destroy) {}
  Owned(Owned&& other) noexcept
      : handle_(std::exchange(other.handle_, Handle{})), destroy_(other.destroy_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  ~Owned() {
    if (handle_ != Handle{}) destroy_(handle_);  // nothing can be done about an error here
  }

  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != Handle{}; }

 private:
  Handle handle_{};
  int (*destroy_)(Handle) = nullptr;
};

/// Wraps what `result` says was made.
template <class Handle>
absl::Status Keep(const Driver& driver, int result, const char* what, Handle handle,
                  int (*destroy)(Handle), Owned<Handle>& owned) {
  MENDEL_RETURN_IF_ERROR(driver.Check(result, what));
  owned = Owned<Handle>(handle, destroy);
  return absl::OkStatus();
}

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_RESOURCES_H_
