// Errors of one value that two programs computed from the same inputs.
#ifndef MENDEL_CLIENT_COMPARISON_VALUE_ERRORS_H_
#define MENDEL_CLIENT_COMPARISON_VALUE_ERRORS_H_

#include <cstdint>
#include <optional>

#include "graph/tensor.h"

namespace mendel {

/// One element of both programs.
struct ElementPair {
  Shape index;
  double want = 0, have = 0;
};

struct ValueErrors {
  double largest = 0;   ///< |want - have|; infinite where only one of two elements is finite
  double mean = 0;      ///< over the elements that are finite in both
  double relative = 0;  ///< `largest` over the largest finite |want|
  int64_t unequal = 0;  ///< elements
  /// The first element in row-major order that is beyond the tolerance; none: the value is within.
  std::optional<ElementPair> first = {};
};

/// Compares tensors of one type. An element of a float is beyond when its error exceeds `tolerance`
/// times the largest finite |want|; NaN equals NaN. An integral value is beyond when more than that
/// share of its elements is unequal, and `first` is then the first unequal one.
ValueErrors CompareElements(const Tensor& want, const Tensor& have, double tolerance);

}  // namespace mendel

#endif  // MENDEL_CLIENT_COMPARISON_VALUE_ERRORS_H_
