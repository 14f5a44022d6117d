// Exp(x) = e^x.

#include "graph/elementwise.h"
#include "graph/functions.h"

namespace mendel {
namespace {

OpDefinition Make() { return UnaryOp<functions::kExp>(); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel
