// The choice of the faster one of two orders of a program.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_ORDER_CHOICE_H_
#define MENDEL_KERNELS_CUDA_BACKEND_ORDER_CHOICE_H_

#include <functional>

#include "absl/status/statusor.h"

namespace mendel::cuda {

/// The seconds of one run.
using TimeOnce = std::function<absl::StatusOr<double>()>;

/// True where `other` is faster than `best` by more than the error of such times (2 %). The least
/// of three to ten times of each counts, interleaved, for some 20 ms. The first run of each loads
/// what is loaded late, and does not count. Errors are those of the runs.
absl::StatusOr<bool> IsFaster(const TimeOnce& other, const TimeOnce& best);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_ORDER_CHOICE_H_
