// LessOrEqual(a, b) = a <= b, with NumPy broadcasting.

#include "graph/comparison.h"

namespace mendel::ops::less_or_equal {
namespace {

OpDefinition Make() { return CompareOp<kLessOrEqual, false>("LessOrEqual"); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::less_or_equal
