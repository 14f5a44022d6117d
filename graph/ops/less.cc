// Less(a, b) = a < b, with NumPy broadcasting.

#include "graph/comparison.h"

namespace mendel::ops::less {
namespace {

OpDefinition Make() { return CompareOp<kLess, false>("Less"); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::less
