// Min(a, b), NaN when either is. (onnx/ chains more operands.) One symmetric oracle: Min(a, b) =
// Min(b, a) and Min(a, a) = a.

#include "graph/elementwise.h"
#include "graph/functions.h"

namespace mendel::ops::min {
namespace {

OpDefinition Make() {
  OpDefinition op = BinaryOp<functions::kMin>();
  op.sign = &SignLeast;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::min
