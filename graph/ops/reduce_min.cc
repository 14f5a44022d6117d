// ReduceMin(x): the smallest element over `axes`, infinity over nothing.

#include "graph/grid.h"
#include "graph/reduced_extreme.h"

namespace mendel::ops::reduce_min {
namespace {

OpDefinition Make() { return ReducedExtremeOp<false>("ReduceMin"); }

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "ReduceMin", .ignores_even_repeats = true});

}  // namespace
}  // namespace mendel::ops::reduce_min
