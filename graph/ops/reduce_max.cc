// ReduceMax(x): the largest element over `axes`, minus infinity over nothing.

#include "graph/grid.h"
#include "graph/reduced_extreme.h"

namespace mendel::ops::reduce_max {
namespace {

OpDefinition Make() { return ReducedExtremeOp<true>("ReduceMax"); }

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "ReduceMax", .ignores_even_repeats = true});

}  // namespace
}  // namespace mendel::ops::reduce_max
