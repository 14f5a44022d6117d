// GreaterOrEqual(a, b) = a >= b = LessOrEqual(b, a), with NumPy broadcasting.

#include "graph/comparison.h"

namespace mendel::ops::greater_or_equal {
namespace {

OpDefinition Make() { return CompareOp<kLessOrEqual, true>("GreaterOrEqual"); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::greater_or_equal
