// ArgMax(x): the position of the largest element along `axis`.

#include <functional>

#include "graph/arg_extreme.h"

namespace mendel::ops::arg_max {
namespace {

OpDefinition Make() {
  OpDefinition op = ArgExtremeOp("ArgMax");
  op.meaning = MeaningOf<ArgExtremeMeaning<std::greater<>>>();
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::arg_max
