// Float attributes that stand for integers.
#ifndef MENDEL_GRAPH_INTEGERS_H_
#define MENDEL_GRAPH_INTEGERS_H_

#include <cmath>

#include "graph/types.h"

namespace mendel {

/// True where `value` is a number of the integral `dtype`, which then holds it exactly.
inline bool IsIntegerOf(DType dtype, double value) {
  return std::trunc(value) == value && value >= static_cast<double>(LowestInteger(dtype)) &&
         value < 0x1p63 && value <= static_cast<double>(HighestInteger(dtype));
}

/// True where the double next to `value` is `value` itself.
inline bool IsExactAsDouble(int64_t value) {
  const double rounded = static_cast<double>(value);
  return rounded < 0x1p63 && static_cast<int64_t>(rounded) == value;
}

}  // namespace mendel

#endif  // MENDEL_GRAPH_INTEGERS_H_
