// The time that cuDNN may take to compile engines while algorithms are searched.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_COMPILE_BUDGET_H_
#define MENDEL_KERNELS_CUDA_CUDNN_COMPILE_BUDGET_H_

#include <chrono>
#include <mutex>

namespace mendel::cuda {

/// Seconds of a process, for all libraries that share it. Thread-safe.
class CompileBudget {
 public:
  /// `seconds`: 0 allows none.
  explicit CompileBudget(double seconds) : left_(seconds) {}

  bool IsSpent() const {
    const std::lock_guard lock(mutex_);
    return left_ <= 0;
  }
  /// Calls `work`, whose time is spent. Work that begins within the budget is finished.
  template <class Work>
  auto Spend(Work&& work) {
    const auto begin = std::chrono::steady_clock::now();
    auto result = work();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    const std::lock_guard lock(mutex_);
    left_ -= taken.count();
    return result;
  }

 private:
  mutable std::mutex mutex_;
  double left_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_COMPILE_BUDGET_H_
