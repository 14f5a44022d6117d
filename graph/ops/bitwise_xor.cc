// BitwiseXor(a, b): the exclusive disjunction of each bit of two integers.

#include "graph/bits.h"

namespace mendel::ops::bitwise_xor {
namespace {

int64_t Bits(int64_t a, int64_t b) { return a ^ b; }

constexpr ScalarFunction kBits = BitsFunction<&Bits>("BitwiseXor");

OpDefinition Make() {
  OpDefinition op = BitsOp("BitwiseXor");
  op.meaning = MeaningOf<BitsMeaning<kBits>>();
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::bitwise_xor
