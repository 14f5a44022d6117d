// Greater(a, b) = a > b = Less(b, a), with NumPy broadcasting.

#include "graph/comparison.h"

namespace mendel::ops::greater {
namespace {

OpDefinition Make() { return CompareOp<kLess, true>("Greater"); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::greater
