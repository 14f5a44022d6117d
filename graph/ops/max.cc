// Max(a, b), NaN when either is. (onnx/ chains more operands.) One symmetric oracle: Max(a, b) =
// Max(b, a) and Max(a, a) = a.

#include "graph/elementwise.h"
#include "graph/functions.h"

namespace mendel::ops::max {
namespace {

OpDefinition Make() {
  OpDefinition op = BinaryOp<functions::kMax>();
  op.sign = [](const NodeView&, std::span<const Sign> inputs, bool) {
    return std::max(inputs[0], inputs[1]);
  };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::max
