// BitShift(x, y){direction}: the bits of x shifted by y places, "LEFT" or "RIGHT". Zeros come in;
// from the left of a signed type its sign. A negative y counts as more places than any type has.

#include <algorithm>

#include "base/status.h"
#include "graph/bits.h"

namespace mendel::ops::bit_shift {
namespace {

constexpr uint64_t kWidth = 64;

int64_t Left(int64_t x, int64_t y) {
  const uint64_t bits = static_cast<uint64_t>(y);
  return bits < kWidth ? static_cast<int64_t>(static_cast<uint64_t>(x) << bits) : 0;
}

int64_t Right(int64_t x, int64_t y) {
  const uint64_t bits = static_cast<uint64_t>(y);
  return x >> std::min(bits, kWidth - 1);
}

/// The same of u64, whose numbers are carried modulo 2^64.
int64_t RightWithoutSign(int64_t x, int64_t y) {
  const uint64_t bits = static_cast<uint64_t>(y);
  return bits < kWidth ? static_cast<int64_t>(static_cast<uint64_t>(x) >> bits) : 0;
}

constexpr ScalarFunction kLeft = BitsFunction<&Left>("BitShiftLeft");
constexpr ScalarFunction kRight = BitsFunction<&Right>("BitShiftRight");
constexpr ScalarFunction kRightWithoutSign = BitsFunction<&RightWithoutSign>("BitShiftRightU64");

struct ShiftMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView& node, int, Index i) {
    const bool left = node.attrs.Str("direction") == "LEFT";
    const bool word = node.inputs[0].dtype == DType::kU64;
    const ScalarFunction& function = left ? kLeft : (word ? kRightWithoutSign : kRight);
    return in.Call(function, {in.Broadcast(0, i), in.Broadcast(1, i)});
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const std::string& direction = attrs.Str("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    return InvalidInput("direction must be LEFT or RIGHT, not '", direction, "'");
  return InferBits(inputs, attrs);
}

OpSample Sample(Rng& rng) {
  OpSample sample = SampleBits(rng);
  sample.attrs.Set("direction", std::string(rng.Flip() ? "LEFT" : "RIGHT"));
  sample.ranges[1].second = {IsUnsigned(sample.inputs[1].dtype) ? 0.0 : -2.0, 70.0};
  return sample;
}

OpDefinition Make() {
  OpDefinition op = BitsOp("BitShift");
  op.attributes = {{"direction", std::string(), true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<ShiftMeaning>();
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::bit_shift
