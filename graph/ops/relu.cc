// Relu(x) = max(x, 0). The oracle keeps the true axiom Relu(0) = 0, so that Relu commutes with zero
// padding.

#include "graph/elementwise.h"

namespace mendel::ops::relu {
namespace {

OpDefinition Make() {
  OpDefinition op = UnaryOp<kRelu>();
  op.sign = &SignNonNegative;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::relu
