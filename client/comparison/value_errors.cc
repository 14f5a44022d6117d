#include "client/comparison/value_errors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "optimizer/numeric_gate.h"

namespace mendel {
namespace {

double ElementError(double want, double have) {
  if (std::isfinite(want) && std::isfinite(have)) return std::abs(want - have);
  const bool same = want == have || (std::isnan(want) && std::isnan(have));
  return same ? 0 : std::numeric_limits<double>::infinity();
}

Shape IndexOf(const Shape& shape, int64_t flat) {
  Shape index(shape.size());
  for (size_t k = shape.size(); k-- > 0;) {
    index[k] = flat % shape[k];
    flat /= shape[k];
  }
  return index;
}

double ScaleOf(const Tensor& want) {
  double scale = kSmallestScale;
  for (int64_t i = 0; i < want.size(); ++i) {
    const double element = std::abs(want.DoubleAt(i));
    if (std::isfinite(element)) scale = std::max(scale, element);
  }
  return scale;
}

}  // namespace

ValueErrors CompareElements(const Tensor& want, const Tensor& have, double tolerance) {
  MENDEL_CHECK(want.type() == have.type());
  const bool integral = IsIntegral(want.dtype());
  const double scale = ScaleOf(want);
  const double bound = integral ? 0 : tolerance * scale;
  ValueErrors errors;
  int64_t finite = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    const double a = want.DoubleAt(i), b = have.DoubleAt(i);
    double error = ElementError(a, b);
    if (integral && error == 0 && want.IntAt(i) != have.IntAt(i)) error = 1;  // beyond 2^53
    errors.largest = std::max(errors.largest, error);
    if (error > 0) ++errors.unequal;
    if (std::isfinite(a) && std::isfinite(b)) {
      errors.mean += error;
      ++finite;
    }
    if (error > bound && !errors.first.has_value())
      errors.first = ElementPair{IndexOf(want.shape(), i), a, b};
  }
  errors.mean /= static_cast<double>(std::max<int64_t>(1, finite));
  errors.relative = errors.largest / scale;
  const double share =
      static_cast<double>(errors.unequal) / static_cast<double>(std::max<int64_t>(1, want.size()));
  if (integral && share <= tolerance) errors.first.reset();
  return errors;
}

}  // namespace mendel
