// Exp(x) = e^x.

#include "graph/elementwise.h"
#include "graph/functions.h"

namespace mendel::ops::exp {
namespace {

OpDefinition Make() {
  OpDefinition op = UnaryOp<functions::kExp>();
  op.sign = &SignPositive;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::exp
