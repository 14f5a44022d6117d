// GreaterOrEqual(a, b) = a >= b = LessOrEqual(b, a), with NumPy broadcasting.

#include "graph/comparison.h"

namespace mendel {
namespace {

OpDefinition Make() { return CompareOp<kLessOrEqual, true>("GreaterOrEqual"); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel
