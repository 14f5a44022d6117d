// Abs(x) = |x|; the most negative integer stays, as wrapping gives.

#include "graph/elementwise.h"
#include "graph/functions.h"

namespace mendel::ops::abs {
namespace {

OpDefinition Make() {
  OpDefinition op = UnaryOp<functions::kAbs>();
  op.sign = &SignNonNegative;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::abs
