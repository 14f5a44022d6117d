// Max(a, b), NaN when either is. (onnx/ chains more operands.) One symmetric oracle: Max(a, b) = Max(b, a) and Max(a, a) = a.

#include "graph/elementwise.h"
#include "graph/functions.h"

namespace mendel {
namespace {

OpDefinition Make() { return BinaryOp<functions::kMax>(); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel
