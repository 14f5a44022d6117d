// Abs(x) = |x|; the most negative integer stays, as wrapping gives.

#include "graph/elementwise.h"
#include "graph/functions.h"

namespace mendel {
namespace {

OpDefinition Make() { return UnaryOp<functions::kAbs>(); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel
