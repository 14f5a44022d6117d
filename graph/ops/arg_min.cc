// ArgMin(x): the position of the smallest element along `axis`.

#include <functional>

#include "graph/arg_extreme.h"

namespace mendel::ops::arg_min {
namespace {

OpDefinition Make() {
  OpDefinition op = ArgExtremeOp("ArgMin");
  op.meaning = MeaningOf<ArgExtremeMeaning<std::less<>>>();
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::arg_min
