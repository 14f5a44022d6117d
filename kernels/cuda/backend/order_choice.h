// Which of two orders of a program is the faster one.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_ORDER_CHOICE_H_
#define MENDEL_KERNELS_CUDA_BACKEND_ORDER_CHOICE_H_

#include <functional>

#include "absl/status/statusor.h"

namespace mendel::cuda {

/// The seconds of one run.
using TimeOnce = std::function<absl::StatusOr<double>()>;

/// Whether `other` wins over `best` by more than such times repeat (2 %): by the least of three to ten times of each, interleaved,
/// for some 20 ms. The first of each loads what is loaded late, and does not count. Errors are theirs.
absl::StatusOr<bool> IsFaster(const TimeOnce& other, const TimeOnce& best);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_ORDER_CHOICE_H_
